/** The search box: `/` goes to it, arrows choose, Enter flies to the object and opens its card. */
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useStore } from "zustand";
import { http } from "../client/http";
import type { Found } from "../client/object_wire";
import { browserTimers } from "../client/timers";
import { createSearch, type Search, type SearchView } from "../data/search";
import { keepHidden } from "./earth_memory";
import { flyTo } from "./fly_to";
import { CloseIcon } from "./icons";
import { codeText } from "./reasons";
import { layerTitle, useEarth, useEarthAccess } from "./use_earth";

function useChoose(): (found: Found) => void {
  const { earth, globe, pick } = useEarthAccess();
  const giveUp = useRef<() => void>(() => undefined);
  useEffect(() => () => giveUp.current(), []);
  return (found) => {
    const layer = earth.layer(found.layer);
    if (!layer) return;
    if (!layer.store.getState().visible) {
      earth.setVisible(found.layer, true);
      keepHidden(found.layer, false);
    }
    pick({ layer: found.layer, feature: found.feature });
    giveUp.current();
    giveUp.current = flyTo(globe, found);
  };
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** `/` from anywhere but a text field. */
function useSlash(focus: () => void): void {
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      event.preventDefault();
      focus();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [focus]);
}

function Option({ found, id, chosen, onChoose }: { found: Found; id: string; chosen: boolean; onChoose: () => void }) {
  const { i18n } = useTranslation("earth");
  const layers = useEarth((view) => view.layers);
  const info = layers.find((layer) => layer.id === found.layer);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (chosen) box.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the field before the list takes the keys
    <div
      ref={box}
      id={id}
      role="option"
      tabIndex={-1}
      aria-selected={chosen}
      className="search__option"
      data-object={found.id}
      // The field keeps the focus.
      onPointerDown={(event) => event.preventDefault()}
      onClick={onChoose}
    >
      <span className="search__title">{found.title}</span>
      <span className="search__layer dim">{info ? layerTitle(info, i18n.language) : found.layer}</span>
      <span className="search__subtitle num dim">{found.subtitle}</span>
    </div>
  );
}

function Answer({ view, listId, onChoose }: { view: SearchView; listId: string; onChoose: (found: Found) => void }) {
  const { t } = useTranslation("earth");
  const { found, phase, at, error } = view;
  return (
    <div className="panel search__answer">
      <div id={listId} role="listbox" aria-label={t("search.results")} className="search__list">
        {found.map((one, index) => (
          <Option
            key={one.id}
            found={one}
            id={`${listId}-${index}`}
            chosen={index === at}
            onChoose={() => onChoose(one)}
          />
        ))}
      </div>
      {phase === "failed" ? (
        <p className="search__note is-stale">{t("search.failed", { code: codeText(error) })}</p>
      ) : null}
      {phase === "ready" && found.length === 0 ? <p className="search__note dim">{t("search.none")}</p> : null}
    </div>
  );
}

/** What a screen reader hears of the answer. */
function Spoken({ view }: { view: SearchView }) {
  const { t } = useTranslation("earth");
  const { phase, found, error } = view;
  const words = { idle: "", asking: "", failed: t("search.failed", { code: codeText(error) }) };
  const count = found.length === 0 ? t("search.none") : t("search.found", { count: found.length });
  return (
    <p className="visually-hidden" role="status">
      {phase === "ready" ? count : words[phase]}
    </p>
  );
}

function Box({ search }: { search: Search }) {
  const { t } = useTranslation("earth");
  const view = useStore(search.store);
  const listId = useId();
  const input = useRef<HTMLInputElement>(null);
  const [open, setOpen] = useState(false);
  /** Enter came before the answer: the best of it is meant. */
  const [eager, setEager] = useState(false);
  const choose = useChoose();
  const shown = open && (view.phase === "failed" || view.phase === "ready" || view.found.length > 0);
  const chosen = view.found[view.at];

  const focus = useMemo(
    () => () => {
      input.current?.focus();
      input.current?.select();
    },
    [],
  );
  useSlash(focus);

  useEffect(() => {
    if (!eager || view.phase === "asking") return;
    setEager(false);
    if (view.phase === "ready" && view.found[0]) take(view.found[0]);
  });

  function take(found: Found): void {
    choose(found);
    setOpen(false);
    input.current?.blur();
  }

  function leave(): void {
    if (view.question !== "") search.ask("");
    else input.current?.blur();
  }

  function enter(): void {
    if (view.phase === "asking") setEager(true);
    else if (chosen) take(chosen);
  }

  function onKey(event: KeyboardEvent) {
    const { key, nativeEvent } = event;
    if (!["ArrowDown", "ArrowUp", "Enter", "Escape"].includes(key) || nativeEvent.isComposing) return;
    event.preventDefault();
    event.stopPropagation();
    setOpen(true);
    if (key === "Enter") enter();
    else if (key === "Escape") leave();
    else search.move(key === "ArrowDown" ? 1 : -1);
  }

  return (
    <search className="search">
      <input
        ref={input}
        className="input search__input"
        type="text"
        inputMode="search"
        enterKeyHint="search"
        role="combobox"
        aria-label={t("search.label")}
        aria-expanded={shown}
        aria-controls={listId}
        aria-autocomplete="list"
        aria-activedescendant={shown && chosen ? `${listId}-${view.at}` : undefined}
        placeholder={t("search.placeholder")}
        title={t("search.hint")}
        autoComplete="off"
        spellCheck={false}
        maxLength={200}
        value={view.question}
        onChange={(event) => {
          setOpen(true);
          setEager(false);
          search.ask(event.target.value);
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKey}
      />
      {view.question === "" ? (
        <kbd className="search__key">/</kbd>
      ) : (
        <button
          type="button"
          className="button button--quiet button--icon search__clear"
          aria-label={t("search.clear")}
          onClick={() => {
            search.ask("");
            focus();
          }}
        >
          <CloseIcon />
        </button>
      )}
      {shown ? <Answer view={view} listId={listId} onChoose={take} /> : null}
      <Spoken view={view} />
    </search>
  );
}

export function EarthSearch() {
  const [search, setSearch] = useState<Search | null>(null);
  useEffect(() => {
    const made = createSearch(http, browserTimers);
    setSearch(made);
    return () => made.stop();
  }, []);
  return search ? <Box search={search} /> : null;
}
