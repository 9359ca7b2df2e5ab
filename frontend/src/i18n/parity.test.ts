import { describe, expect, it } from "vitest";

type Texts = { [key: string]: string | Texts };
const files = import.meta.glob<{ default: Texts }>("./{en,zh}/*.json", { eager: true });
const spaces = [...new Set(Object.keys(files).map((name) => name.split("/")[2] as string))];

function leaves(texts: Texts, prefix = ""): [key: string, text: string][] {
  return Object.entries(texts).flatMap(([key, value]) =>
    typeof value === "string" ? [[`${prefix}${key}`, value] as [string, string]] : leaves(value, `${prefix}${key}.`),
  );
}

/** Plural forms differ between languages: `age_one` and `age_other` are one key. */
const stem = (key: string) => key.replace(/_(zero|one|two|few|many|other)$/, "");
const of = (language: string, space: string) => leaves(files[`./${language}/${space}`]?.default ?? {});

describe.each(spaces)("%s", (space) => {
  it("has the same keys in both languages", () => {
    const keys = (language: string) => [...new Set(of(language, space).map(([key]) => stem(key)))].sort();
    expect(keys("zh")).toEqual(keys("en"));
    expect(keys("en").length).toBeGreaterThan(0);
  });

  it("fills in the same values in both languages", () => {
    const slots = (language: string) => {
      const found = new Map<string, string>();
      for (const [key, text] of of(language, space)) {
        const names = [...text.matchAll(/\{\{(\w+)/g)].map((match) => match[1]).sort();
        found.set(stem(key), [...new Set([...(found.get(stem(key))?.split(",") ?? []), ...names])].join(","));
      }
      return found;
    };
    const zh = slots("zh");
    for (const [key, names] of slots("en")) if (names) expect([key, zh.get(key)]).toEqual([key, names]);
  });
});
