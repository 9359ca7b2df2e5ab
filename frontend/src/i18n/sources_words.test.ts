import { describe, expect, it } from "vitest";
import { SOURCE_STATES } from "../data/source_state";
import en from "./en/sources.json";
import zh from "./zh/sources.json";

const pages = import.meta.glob<string>("../../../docs/operations.md", {
  query: "?raw",
  import: "default",
  eager: true,
});
const operations = Object.values(pages)[0] ?? "";

/** The first cells of the table under a heading. */
function firstCells(heading: string): string[] {
  const section = operations.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const rows = section.split("\n").filter((line) => /^\| /.test(line));
  return rows.slice(1).flatMap((line) => (line.split("|")[1] ?? "").split(",").map((cell) => cell.trim()));
}

describe.each([
  ["English", en],
  ["Chinese", zh],
])("the words of sources in %s", (_, texts) => {
  it("name each state and say what it means", () => {
    expect(Object.keys(texts.state).sort()).toEqual([...SOURCE_STATES].sort());
    expect(Object.keys(texts.about).sort()).toEqual([...SOURCE_STATES].sort());
  });

  it("say of each code that the operations page has what was wrong with the record", () => {
    const codes = firstCells("What is refused").map((cell) => cell.replaceAll("`", ""));
    expect(codes.length).toBeGreaterThan(10);
    expect(Object.keys(texts.reject).sort()).toEqual(codes.sort());
  });
});

it("each state is explained on the operations page under the page's own word", () => {
  expect(firstCells("What is wrong with a source").sort()).toEqual(Object.values(en.state).sort());
});
