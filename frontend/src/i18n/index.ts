/** Languages of the page: which one is on, how it is kept, and the texts of all of them. */
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import enCodes from "./en/codes.json";
import enCommon from "./en/common.json";
import enEarth from "./en/earth.json";
import enSources from "./en/sources.json";
import enTerminal from "./en/terminal.json";
import zhCodes from "./zh/codes.json";
import zhCommon from "./zh/common.json";
import zhEarth from "./zh/earth.json";
import zhSources from "./zh/sources.json";
import zhTerminal from "./zh/terminal.json";

export const LANGUAGES = ["en", "zh"] as const;
export type Language = (typeof LANGUAGES)[number];

const KEY = "planetwire.language";

export const resources = {
  en: { codes: enCodes, common: enCommon, earth: enEarth, sources: enSources, terminal: enTerminal },
  zh: { codes: zhCodes, common: zhCommon, earth: zhEarth, sources: zhSources, terminal: zhTerminal },
};

/** The kept choice if it is one of ours, else what the browser prefers. */
export function chooseLanguage(kept: string | null, preferred: readonly string[]): Language {
  if (kept === "en" || kept === "zh") return kept;
  const first = preferred.find((tag) => /^(en|zh)\b/i.test(tag));
  return first?.toLowerCase().startsWith("zh") ? "zh" : "en";
}

function keptLanguage(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** Switches at once and keeps the choice; a browser that refuses storage only forgets it. */
export async function setLanguage(language: Language): Promise<void> {
  await i18next.changeLanguage(language);
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  try {
    localStorage.setItem(KEY, language);
  } catch {
    // Private windows may refuse storage.
  }
}

/** Call once before the first render. */
export async function startI18n(): Promise<void> {
  const language = chooseLanguage(keptLanguage(), navigator.languages ?? [navigator.language]);
  await i18next.use(initReactI18next).init({
    lng: language,
    fallbackLng: "en",
    ns: ["common", "codes", "earth", "sources", "terminal"],
    defaultNS: "common",
    resources,
    interpolation: { escapeValue: false },
  });
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
}

export { i18next };
