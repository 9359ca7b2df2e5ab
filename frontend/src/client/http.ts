/** JSON over HTTP: problem documents become `HttpError`, no answer `NetworkError`; every request has a timeout. */

const TIMEOUT_MS = 20_000;

export type Fetch = (input: string, init?: RequestInit) => Promise<Response>;

/** The server answered with an error; `code` is stable and may be matched on. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retry_after_s: number | null = null,
  ) {
    super(message);
    this.name = "HttpError";
  }
}

/** No usable answer came: offline, refused, or silent for longer than the limit. */
export class NetworkError extends Error {
  constructor(
    message: string,
    readonly timed_out = false,
  ) {
    super(message);
    this.name = "NetworkError";
  }
}

export interface RequestOptions {
  signal?: AbortSignal;
  /** `no-store` bypasses every cache; needed after a clear or a gap. */
  cache?: RequestCache;
  timeout_ms?: number;
  headers?: Record<string, string>;
}

export interface Http {
  get<T>(path: string, options?: RequestOptions): Promise<T>;
  /** Resolves with the decoded body, or undefined for an empty one. */
  send<T>(
    method: "POST" | "PATCH" | "PUT" | "DELETE",
    path: string,
    body?: unknown,
    options?: RequestOptions,
  ): Promise<T>;
}

function retryAfter(response: Response): number | null {
  const seconds = Number(response.headers.get("Retry-After") ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : null;
}

async function problem(response: Response): Promise<HttpError> {
  let code = `http_${response.status}`;
  let message = response.statusText || `HTTP ${response.status}`;
  try {
    const body = (await response.json()) as Record<string, unknown> | null;
    if (typeof body?.code === "string") code = body.code;
    const text = body?.detail ?? body?.title;
    if (typeof text === "string") message = text;
  } catch {
    // A proxy may answer with HTML: only the status is usable.
  }
  return new HttpError(response.status, code, message, retryAfter(response));
}

async function decode<T>(response: Response): Promise<T> {
  const text = await response.text();
  if (text === "") return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new HttpError(response.status, "not_json", "the answer is not JSON");
  }
}

function failure(error: unknown, caller: AbortSignal | undefined, timeout: AbortSignal): unknown {
  if (error instanceof HttpError) return error;
  if (caller?.aborted) return caller.reason;
  return new NetworkError(error instanceof Error ? error.message : String(error), timeout.aborted);
}

function bodyOf(body: unknown): Pick<RequestInit, "body"> & { headers: Record<string, string> } {
  if (body === undefined) return { headers: {} };
  return { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

/** An HTTP client over the given transport. An aborted `signal` rejects with its own reason, never with NetworkError. */
export function createHttp(fetch: Fetch, limit_ms = TIMEOUT_MS): Http {
  async function request<T>(method: string, path: string, body: unknown, options: RequestOptions): Promise<T> {
    const timeout = AbortSignal.timeout(options.timeout_ms ?? limit_ms);
    const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
    const { headers, ...content } = bodyOf(body);
    try {
      const response = await fetch(path, {
        method,
        ...content,
        headers: { Accept: "application/json", ...headers, ...options.headers },
        credentials: "same-origin",
        cache: options.cache,
        signal,
      });
      if (!response.ok) throw await problem(response);
      return await decode<T>(response);
    } catch (error) {
      throw failure(error, options.signal, timeout);
    }
  }
  return {
    get: (path, options = {}) => request("GET", path, undefined, options),
    send: (method, path, body, options = {}) => request(method, path, body, options),
  };
}

/** The page's own client: same origin, the browser's fetch. */
export const http: Http = createHttp((input, init) => globalThis.fetch(input, init));

/** Whether a retry can help: no answer, an overloaded or a failing server. */
export function isRetryable(error: unknown): boolean {
  return error instanceof NetworkError || (error instanceof HttpError && (error.status >= 500 || error.status === 429));
}
