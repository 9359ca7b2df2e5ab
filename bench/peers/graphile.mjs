// graphile-worker (MIT), driven as its documentation says for speed: `node graphile.mjs WHAT DSN NUMBERS`. Prints JSON.
import pg from "pg";
import { makeWorkerUtils, run, Logger } from "graphile-worker";

const SPEC = `select graphile_worker.add_jobs(array_agg(json_populate_record(null::graphile_worker.job_spec,
  json_build_object('identifier', 'nothing', 'payload', json_build_object('n', n))))) from generate_series($1::int, $2::int) n`;
const BATCH = 10_000;
const LEFT = "select exists (select from graphile_worker._private_jobs) as left";
const LOOK_MS = 2;
const quiet = new Logger(() => () => {});

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function fill(pool, { rows }) {
  const utils = await makeWorkerUtils({ pgPool: pool, logger: quiet });
  await utils.migrate();
  await utils.release();
  await pool.query("truncate graphile_worker._private_jobs");
  for (let from = 1; from <= rows; from += BATCH) await pool.query(SPEC, [from, Math.min(rows, from + BATCH - 1)]);
  await pool.query("vacuum analyze graphile_worker._private_jobs");
  return rows;
}

// Seconds until every job has run and is gone from the table. Connections are open before the clock starts.
async function drain(pool, { rows, jobs, local }) {
  const open = await Promise.all(Array.from({ length: jobs + 1 }, () => pool.connect()));
  for (const client of open) client.release();
  let left = rows;
  let ran;
  const all = new Promise((done) => (ran = done));
  const taskList = { nothing: async () => void (--left === 0 && ran()) };
  const began = performance.now();
  const runner = await run({
    pgPool: pool,
    taskList,
    logger: quiet,
    noHandleSignals: true,
    preset: {
      worker: {
        concurrentJobs: jobs,
        maxPoolSize: jobs + 1,
        localQueue: { size: local, refetchDelay: { durationMs: 10 } },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
  });
  await all;
  while ((await pool.query(LEFT)).rows[0].left) await pause(LOOK_MS);
  const seconds = (performance.now() - began) / 1000;
  await runner.stop();
  return seconds;
}

const [what, dsn, numbers] = process.argv.slice(2);
const asked = JSON.parse(numbers);
const pool = new pg.Pool({ connectionString: dsn, max: (asked.jobs ?? 1) + 2 });
pool.on("error", () => {});
pool.on("connect", (client) => client.on("error", () => {}));
console.log(JSON.stringify(await { fill, drain }[what](pool, asked)));
await pool.end();
process.exit(0);
