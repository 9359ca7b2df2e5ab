/** What concerns the whole page, above it: simulated feeds, room on the disk, a server that is away. */
import { useTranslation } from "react-i18next";
import { useSession } from "./use_session";

export function Banners() {
  const { t } = useTranslation("common");
  const { phase, simulated, disk } = useSession();
  return (
    <div>
      {simulated ? <div className="banner">{t("simulated")}</div> : null}
      {disk ? (
        <div className={disk === "over" ? "banner banner--bad" : "banner"} role="status">
          {t(`disk_${disk}`)}
        </div>
      ) : null}
      {phase === "unreachable" ? (
        <div className="banner banner--bad" role="alert">
          {t("unreachable")}
        </div>
      ) : null}
    </div>
  );
}
