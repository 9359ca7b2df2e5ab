/** Flying to what search found, which may not be on the globe yet. */
import type { Found } from "../client/object_wire";
import type { Globe } from "../draw/globe";

/** An object that moves, found in a layer that was off, has no place before its layer is loaded and moved. */
const PLACE_TRIES = 50;
const PLACE_MS = 200;

/** Flies as soon as the object has a place; the returned function cancels. */
export function flyTo(globe: Pick<Globe, "placeOf" | "camera"> | null, found: Found): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const attempt = (left: number) => {
    const place = globe?.placeOf(found.layer, found.feature);
    if (place) globe?.camera.fly(place.lat, place.lon, place.altitude_m, place.extent_m);
    else if (found.lat !== null && found.lon !== null) globe?.camera.fly(found.lat, found.lon, 0);
    else if (left > 0) timer = setTimeout(() => attempt(left - 1), PLACE_MS);
  };
  attempt(PLACE_TRIES);
  return () => clearTimeout(timer);
}
