"""The city registry: the cities, their airports' coordinates, their settlement sources, their names.

Only IANA zone names are stored, never an offset: an offset is wrong for half of the year wherever clocks change.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

NAME_MAX_CHARS = 64  # longer texts are not looked up

# In rank order, which is also the order of the terminal's list. Coordinates are the airport's, in degrees.
# name | Chinese | airport | ICAO | IATA | latitude | longitude | zone | display unit
_PLACES = """
Seoul | 首尔 | Incheon | RKSI | ICN | 37.4691 | 126.451 | Asia/Seoul | C
Busan | 釜山 | Gimhae | RKPK | PUS | 35.1795 | 128.938 | Asia/Seoul | C
Beijing | 北京 | Beijing Capital | ZBAA | PEK | 40.0801 | 116.585 | Asia/Shanghai | C
Shanghai | 上海 | Shanghai Pudong | ZSPD | PVG | 31.1434 | 121.805 | Asia/Shanghai | C
Hong Kong | 香港 | Hong Kong | VHHH | HKG | 22.3089 | 113.915 | Asia/Hong_Kong | C
Taipei | 台北 | Taipei Songshan | RCSS | TSA | 25.0694 | 121.552 | Asia/Taipei | C
Tokyo | 东京 | Tokyo Haneda | RJTT | HND | 35.5523 | 139.78 | Asia/Tokyo | C
Guangzhou | 广州 | Guangzhou Baiyun | ZGGG | CAN | 23.3924 | 113.299 | Asia/Shanghai | C
Shenzhen | 深圳 | Shenzhen Bao'an | ZGSZ | SZX | 22.6393 | 113.811 | Asia/Shanghai | C
Chengdu | 成都 | Chengdu Shuangliu | ZUUU | CTU | 30.5785 | 103.947 | Asia/Shanghai | C
Chongqing | 重庆 | Chongqing Jiangbei | ZUCK | CKG | 29.7192 | 106.642 | Asia/Shanghai | C
Wuhan | 武汉 | Wuhan Tianhe | ZHHH | WUH | 30.7838 | 114.208 | Asia/Shanghai | C
Qingdao | 青岛 | Qingdao Jiaodong | ZSQD | TAO | 36.365 | 120.09833 | Asia/Shanghai | C
Singapore | 新加坡 | Singapore Changi | WSSS | SIN | 1.35019 | 103.994 | Asia/Singapore | C
London | 伦敦 | London City | EGLC | LCY | 51.5053 | 0.05528 | Europe/London | C
Paris | 巴黎 | Paris Le Bourget | LFPB | LBG | 48.9694 | 2.44139 | Europe/Paris | C
New York | 纽约 | LaGuardia | KLGA | LGA | 40.777242 | -73.872606 | America/New_York | F
Los Angeles | 洛杉矶 | Los Angeles | KLAX | LAX | 33.942496 | -118.408049 | America/Los_Angeles | F
Chicago | 芝加哥 | O'Hare | KORD | ORD | 41.97694 | -87.90815 | America/Chicago | F
Miami | 迈阿密 | Miami | KMIA | MIA | 25.795361 | -80.290116 | America/New_York | F
Dallas | 达拉斯 | Dallas Love Field | KDAL | DAL | 32.845945 | -96.850877 | America/Chicago | F
Houston | 休斯敦 | Hobby | KHOU | HOU | 29.6458 | -95.277232 | America/Chicago | F
Austin | 奥斯汀 | Austin-Bergstrom | KAUS | AUS | 30.194527 | -97.669876 | America/Chicago | F
Atlanta | 亚特兰大 | Hartsfield-Jackson | KATL | ATL | 33.6367 | -84.427864 | America/New_York | F
Denver | 丹佛 | Buckley | KBKF | BFK | 39.701761 | -104.751961 | America/Denver | F
San Francisco | 旧金山 | San Francisco | KSFO | SFO | 37.618806 | -122.375417 | America/Los_Angeles | F
Seattle | 西雅图 | Seattle-Tacoma | KSEA | SEA | 47.449889 | -122.311778 | America/Los_Angeles | F
Toronto | 多伦多 | Toronto Pearson | CYYZ | YYZ | 43.6772 | -79.6306 | America/Toronto | C
Mexico City | 墨西哥城 | Benito Juárez | MMMX | MEX | 19.4363 | -99.0721 | America/Mexico_City | C
Panama City | 巴拿马城 | Marcos A. Gelabert | MPMG | PAC | 8.97334 | -79.5556 | America/Panama | C
São Paulo | 圣保罗 | Guarulhos | SBGR | GRU | -23.43556 | -46.47306 | America/Sao_Paulo | C
Buenos Aires | 布宜诺斯艾利斯 | Ezeiza | SAEZ | EZE | -34.8222 | -58.5358 | America/Argentina/Buenos_Aires | C
Madrid | 马德里 | Madrid Barajas | LEMD | MAD | 40.4936 | -3.56676 | Europe/Madrid | C
Milan | 米兰 | Milan Malpensa | LIMC | MXP | 45.6306 | 8.72811 | Europe/Rome | C
Munich | 慕尼黑 | Munich | EDDM | MUC | 48.3538 | 11.7861 | Europe/Berlin | C
Amsterdam | 阿姆斯特丹 | Schiphol | EHAM | AMS | 52.3086 | 4.76389 | Europe/Amsterdam | C
Warsaw | 华沙 | Warsaw Chopin | EPWA | WAW | 52.1657 | 20.9671 | Europe/Warsaw | C
Helsinki | 赫尔辛基 | Helsinki-Vantaa | EFHK | HEL | 60.3172 | 24.9633 | Europe/Helsinki | C
Moscow | 莫斯科 | Vnukovo | UUWW | VKO | 55.5915 | 37.2615 | Europe/Moscow | C
Istanbul | 伊斯坦布尔 | Istanbul | LTFM | IST | 41.27533 | 28.752 | Europe/Istanbul | C
Ankara | 安卡拉 | Esenboğa | LTAC | ESB | 40.1281 | 32.9951 | Europe/Istanbul | C
Tel Aviv | 特拉维夫 | Ben Gurion | LLBG | TLV | 32.0114 | 34.8867 | Asia/Jerusalem | C
Jeddah | 吉达 | King Abdulaziz | OEJN | JED | 21.6796 | 39.1565 | Asia/Riyadh | C
Lucknow | 勒克瑙 | Chaudhary Charan Singh | VILK | LKO | 26.7606 | 80.8893 | Asia/Kolkata | C
Karachi | 卡拉奇 | Jinnah | OPKC | KHI | 24.9065 | 67.1608 | Asia/Karachi | C
Kuala Lumpur | 吉隆坡 | Kuala Lumpur | WMKK | KUL | 2.74558 | 101.71 | Asia/Kuala_Lumpur | C
Jakarta | 雅加达 | Halim Perdanakusuma | WIHH | HLP | -6.26661 | 106.891 | Asia/Jakarta | C
Manila | 马尼拉 | Ninoy Aquino | RPLL | MNL | 14.5086 | 121.02 | Asia/Manila | C
Cape Town | 开普敦 | Cape Town | FACT | CPT | -33.9648 | 18.6017 | Africa/Johannesburg | C
Wellington | 惠灵顿 | Wellington | NZWN | WLG | -41.3272 | 174.80499 | Pacific/Auckland | C
"""

# key | source | station | label. Every other city is settled by the METAR of its airport.
_SETTLEMENTS = """
hong kong | hko | HKO | Hong Kong Observatory
shenzhen | hko | LFS | Lau Fau Shan
taipei | cwa | 466920 | Taipei
tel aviv | ims | LLBG | Ben Gurion
jeddah | ncm | OEJN | King Abdulaziz
paris | aeroweb | LFPB | Paris Le Bourget
istanbul | noaa | LTFM | Istanbul
amsterdam | daily_history | EHAM | Schiphol
helsinki | daily_history | EFHK | Helsinki-Vantaa
cape town | daily_history | FACT | Cape Town
jakarta | daily_history | WIHH | Halim Perdanakusuma
kuala lumpur | daily_history | WMKK | Kuala Lumpur
manila | daily_history | RPLL | Ninoy Aquino
karachi | daily_history | OPKC | Jinnah
panama city | daily_history | MPMG | Marcos A. Gelabert
busan | daily_history | RKPK | Gimhae
guangzhou | daily_history | ZGGG | Guangzhou Baiyun
qingdao | daily_history | ZSQD | Qingdao Jiaodong
"""

# The runway whose sensors represent the city, if there are any.
_RUNWAYS = {
    "seoul": "15R/33L",
    "beijing": "19/01",
    "shanghai": "17L/35R",
    "guangzhou": "02L/20R",
    "chengdu": "02L/20R",
    "chongqing": "20R/02L",
    "wuhan": "04/22",
    "qingdao": "16/34",
}

# Airports whose routine report comes once an hour, beside those of the United States; all others report twice.
_HOURLY = frozenset({"CYYZ", "FACT", "MMMX", "MPMG", "OEJN", "RPLL", "SAEZ", "SBGR"})

# Further names. The key, both display names, ICAO and IATA codes need no entry.
_ALIASES = """
seoul | sel, 首爾, rkss, gmp
busan | pusan
beijing | bj, bjs, peking
shanghai | sh, sha, zsss
hong kong | hk, hongkong, xianggang, hong kong sar
taipei | tpe, rctp, taibei, 臺北
tokyo | tyo, nrt, rjaa, 東京
guangzhou | gz, canton, 廣州
shenzhen | sz, lfs, lau fau shan
chengdu | cd
chongqing | cq, 重慶
wuhan | wh, 武漢
qingdao | qd, tsingtao, 青島
singapore | sg, xinjiapo
london | lon, lhr, egll
paris | par, cdg, lfpg
new york | nyc, ny, new york city, jfk, kjfk, niuyue
los angeles | la
chicago | chi
dallas | dfw, kdfw
houston | iah, kiah
denver | den, kden
san francisco | sf
toronto | yto
mexico city | cdmx, ciudad de mexico
panama city | panama, ciudad de panama
sao paulo | sp, sao
buenos aires | bue, ba, caba
milan | mil, milano
munich | muenchen, münchen
moscow | mow, moskva
tel aviv | tel aviv yafo
kuala lumpur | kl
jakarta | jkt
manila | metro manila
"""

_SEPARATORS = re.compile(r"(?:%20|[\s_\-])+")


@dataclass(frozen=True, slots=True)
class Settlement:
    """The station whose reading decides the city's day; `source` is the observation source that carries it."""

    source: str
    station: str
    label: str


@cache
def _zone(name: str) -> ZoneInfo:
    """Cached for ever: zoneinfo itself caches only eight zones, and rereads the files of the others."""
    return ZoneInfo(name)


@dataclass(frozen=True, slots=True)
class City:
    """One city. `key` is lower case with spaces; `rank` begins at 1; `lat_deg`, `lon_deg` are the airport's."""

    key: str
    display_name: str
    display_name_zh: str
    airport: str
    icao: str
    iata: str
    lat_deg: float
    lon_deg: float
    timezone: str
    use_fahrenheit: bool
    settlement: Settlement
    settlement_runway: str | None
    rank: int
    aliases: tuple[str, ...]

    @property
    def temp_symbol(self) -> str:
        """`°C` or `°F`: the unit people expect to see. Stored temperatures are always °C."""
        return "°F" if self.use_fahrenheit else "°C"

    @property
    def metar_cadence_s(self) -> int:
        """Seconds between two routine reports of the airport."""
        return 3_600 if self.icao.startswith("K") or self.icao in _HOURLY else 1_800

    @property
    def zone(self) -> ZoneInfo:
        """The IANA zone's rules."""
        return _zone(self.timezone)

    @property
    def topic(self) -> str:
        """The city's topic in the observation log."""
        return f"city:{self.key}"

    def local(self, at: datetime) -> datetime:
        """The aware time `at` in the city's local time."""
        return at.astimezone(self.zone)

    def day_start(self, day: date) -> datetime:
        """First instant of the city-local `day` in UTC; a midnight that clocks skip is the instant of the skip."""
        return datetime(day.year, day.month, day.day, tzinfo=self.zone).astimezone(UTC)

    def day_end(self, day: date) -> datetime:
        """First instant of the next day; days are 23, 24 or 25 hours long, or whatever the zone's rules say."""
        return self.day_start(day + timedelta(days=1))

    def is_settlement_runway(self, runway: str) -> bool:
        """Whether `runway` (`17L/35R`, in either order) is the one that represents the city."""
        wanted = self.settlement_runway
        return wanted is not None and sorted(runway.split("/")) == sorted(wanted.split("/"))


class _Accents(dict[int, int | None]):
    """For `str.translate`: removes combining characters. Each character is classified once per process."""

    def __missing__(self, code: int) -> int | None:
        self[code] = found = None if unicodedata.combining(chr(code)) else code
        return found


_ACCENTS = _Accents()


def fold(name: str) -> str:
    """Lower case, accents dropped, `-`, `_`, `%20` and runs of white space as one space."""
    spaced = _SEPARATORS.sub(" ", name).casefold()
    return unicodedata.normalize("NFKD", spaced).translate(_ACCENTS).strip()


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


def _build() -> tuple[City, ...]:
    settlements = {key: Settlement(source, station, label) for key, source, station, label in _rows(_SETTLEMENTS)}
    aliases = {key: tuple(a.strip() for a in names.split(",")) for key, names in _rows(_ALIASES)}
    cities = []
    for rank, (name, zh, airport, icao, iata, lat, lon, zone, unit) in enumerate(_rows(_PLACES), start=1):
        key = fold(name)
        settlement = settlements.get(key, Settlement("metar", icao, airport))
        city = City(
            key, name, zh, airport, icao, iata, float(lat), float(lon), zone, unit == "F",
            settlement, _RUNWAYS.get(key), rank, aliases.get(key, ()),
        )  # fmt: skip
        cities.append(city)
    return tuple(cities)


CITIES: tuple[City, ...] = _build()
BY_KEY: dict[str, City] = {city.key: city for city in CITIES}


@cache
def _names() -> dict[str, City]:
    """Every folded name. Raises ValueError when two cities claim one."""
    names: dict[str, City] = {}
    for city in CITIES:
        own = (city.key, city.display_name, city.display_name_zh, city.icao, city.iata, *city.aliases)
        for name in {form for n in own for form in (fold(n), fold(n).replace(" ", ""))}:
            if names.setdefault(name, city) is not city:
                raise ValueError(f"{name!r} names both {names[name].key} and {city.key}")
    return names


def resolve(name: str) -> City | None:
    """The city of a key, display name, airport code or alias, in any spelling; None if there is none."""
    if len(name) > NAME_MAX_CHARS:
        return None
    return _spelt(name)


@lru_cache(maxsize=1024)
def _spelt(name: str) -> City | None:
    """Cached: a few spellings are looked up thousands of times a minute."""
    return _names().get(fold(name))


def by_icao(icao: str) -> City | None:
    """The city whose own airport has this ICAO code; aliases do not count."""
    return _by_icao().get(icao.upper())


@cache
def _by_icao() -> dict[str, City]:
    return {city.icao: city for city in CITIES}


def read_zones() -> None:
    """Reads every city's zone. At the start: later there may be no file descriptor left."""
    for city in CITIES:
        _zone(city.timezone)
