/** When a source runs: by interval or by calendar. What the server refuses stands beside the field it is about. */
import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { SourceInfo } from "../client/earth_types";
import { changeOf, draftOf, fieldOf, type ScheduleDraft, type ScheduleField } from "../data/source_edit";
import { type IntervalUnit, intervalText, splitInterval, timeZones, UNIT_S } from "./job_format";
import { reasonText } from "./reasons";
import { useJobActions } from "./use_job_actions";

const UNITS: readonly IntervalUnit[] = ["s", "min", "h", "d"];

interface Refusal {
  field: ScheduleField | null;
  text: string;
}

interface FieldProps {
  draft: ScheduleDraft;
  onDraft: (change: Partial<ScheduleDraft>) => void;
  refusal: Refusal | null;
  source: SourceInfo;
}

/** A label over its control, and under it what is wrong and what is allowed. */
function Field({
  label,
  hint,
  error,
  children,
}: {
  label: string;
  hint?: string;
  error: string | null;
  children: (ids: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean }) => ReactNode;
}) {
  const id = useId();
  const described = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(" ") || undefined;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-describedby": described, "aria-invalid": error !== null })}
      {error ? (
        <p id={`${id}-error`} className="field__error" role="alert">
          {error}
        </p>
      ) : null}
      {hint ? (
        <p id={`${id}-hint`} className="faint">
          {hint}
        </p>
      ) : null}
    </div>
  );
}

function errorAt(refusal: Refusal | null, field: ScheduleField): string | null {
  return refusal?.field === field ? refusal.text : null;
}

function IntervalField({ draft, onDraft, refusal, source }: FieldProps) {
  const { t } = useTranslation("earth");
  const [typed, setTyped] = useState(() => splitInterval(draft.interval_s ?? 60));
  const [text, setText] = useState(() => String(typed.amount));
  const set = (next: string, unit: IntervalUnit) => {
    const amount = Number(next);
    setText(next);
    setTyped({ amount, unit });
    onDraft({ interval_s: amount > 0 && Number.isFinite(amount) ? amount * UNIT_S[unit] : null });
  };
  const floor = source.floor_s ? t("sources.floor", { time: intervalText(t, source.floor_s) }) : t("sources.no_floor");
  const error = draft.interval_s === null ? t("sources.invalid") : errorAt(refusal, "interval_s");
  return (
    <Field label={t("sources.interval")} hint={floor} error={error}>
      {(ids) => (
        <div className="schedule__pair">
          <input
            {...ids}
            className="input num"
            inputMode="decimal"
            value={text}
            onChange={(event) => set(event.target.value, typed.unit)}
          />
          <select
            className="input"
            aria-label={t("sources.unit")}
            value={typed.unit}
            onChange={(event) => set(text, UNITS.find((unit) => unit === event.target.value) ?? "s")}
          >
            {UNITS.map((unit) => (
              <option key={unit} value={unit}>
                {t(`sources.unit_${unit}`)}
              </option>
            ))}
          </select>
        </div>
      )}
    </Field>
  );
}

function CronFields({ draft, onDraft, refusal }: FieldProps) {
  const { t } = useTranslation("earth");
  const zones = useId();
  return (
    <>
      <Field label={t("sources.cron")} hint={t("sources.cron_hint")} error={errorAt(refusal, "cron")}>
        {(ids) => (
          <input
            {...ids}
            className="input input--code"
            autoComplete="off"
            spellCheck={false}
            value={draft.cron}
            onChange={(event) => onDraft({ cron: event.target.value })}
          />
        )}
      </Field>
      <Field label={t("sources.zone")} error={errorAt(refusal, "time_zone")}>
        {(ids) => (
          <input
            {...ids}
            className="input"
            list={zones}
            autoComplete="off"
            spellCheck={false}
            value={draft.time_zone}
            onChange={(event) => onDraft({ time_zone: event.target.value })}
          />
        )}
      </Field>
      <datalist id={zones}>
        {timeZones().map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
    </>
  );
}

function MisfireField({ draft, onDraft, refusal }: FieldProps) {
  const { t } = useTranslation("earth");
  return (
    <Field label={t("sources.misfire")} error={errorAt(refusal, "misfire")}>
      {(ids) => (
        <select
          {...ids}
          className="input"
          value={draft.misfire}
          onChange={(event) => onDraft({ misfire: event.target.value === "skip" ? "skip" : "once" })}
        >
          <option value="once">{t("sources.misfire_once")}</option>
          <option value="skip">{t("sources.misfire_skip")}</option>
        </select>
      )}
    </Field>
  );
}

function KindField({ draft, onDraft, source }: FieldProps) {
  const { t } = useTranslation("earth");
  const name = useId();
  return (
    <fieldset className="schedule__kind">
      <legend>{t("sources.kind")}</legend>
      {(["interval", "cron"] as const).map((kind) => (
        <label key={kind} title={kind === "cron" && !source.has_calendar ? t("sources.cannot_calendar") : undefined}>
          <input
            type="radio"
            name={name}
            checked={draft.kind === kind}
            disabled={kind === "cron" && !source.has_calendar}
            onChange={() => onDraft({ kind })}
          />
          {t(`sources.kind_${kind}`)}
        </label>
      ))}
    </fieldset>
  );
}

/** Why saving would do nothing now, or null. */
function useObstacle(source: SourceInfo, draft: ScheduleDraft): string | null {
  const { t } = useTranslation("earth");
  const actions = useJobActions();
  if (actions.isPending(`source:${source.source}`)) return t("sources.busy_change");
  const change = changeOf(source, draft);
  if (change === null) return t("sources.incomplete");
  return Object.keys(change).length === 0 ? t("sources.unchanged") : null;
}

export function JobSchedule({ source, onDone }: { source: SourceInfo; onDone: () => void }) {
  const { t } = useTranslation("earth");
  const actions = useJobActions();
  const [draft, setDraft] = useState(() => draftOf(source));
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const obstacle = useObstacle(source, draft);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector<HTMLElement>("input:checked")?.focus(), []);

  async function send(change: ReturnType<typeof changeOf>): Promise<void> {
    if (change === null) return;
    const message = t("sources.saved", { source: source.source });
    const outcome = await actions.tryChange(source.source, change, message);
    if (outcome === "saved") onDone();
    if (typeof outcome === "string") return;
    setRefusal({ field: fieldOf(outcome.code, outcome.message, draft.kind), text: reasonText(outcome) });
  }

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (obstacle === null) void send(changeOf(source, draft));
  }

  const onDraft = (change: Partial<ScheduleDraft>) => {
    setDraft((held) => ({ ...held, ...change }));
    setRefusal(null);
  };
  const fields = { draft, onDraft, refusal, source };
  return (
    <form
      ref={form}
      className="schedule"
      aria-label={t("sources.edit_label", { source: source.source })}
      onSubmit={submit}
    >
      <KindField {...fields} />
      {draft.kind === "interval" ? <IntervalField {...fields} /> : <CronFields {...fields} />}
      {source.has_calendar ? <MisfireField {...fields} /> : null}
      {refusal && refusal.field === null ? (
        <p className="field__error" role="alert">
          {refusal.text}
        </p>
      ) : null}
      <div className="schedule__ends">
        <button
          type="submit"
          className="button button--primary"
          disabled={obstacle !== null}
          title={obstacle ?? undefined}
          aria-description={obstacle ?? undefined}
        >
          {t("sources.save")}
        </button>
        <button type="button" className="button button--quiet" onClick={onDone}>
          {t("sources.discard")}
        </button>
        {source.has_calendar ? (
          <button
            type="button"
            className="button button--quiet"
            disabled={actions.isPending(`source:${source.source}`)}
            onClick={() => void send({ interval_s: null, cron: null, time_zone: null, misfire: null })}
          >
            {t("sources.reset")}
          </button>
        ) : null}
      </div>
    </form>
  );
}
