// The alarms and the dashboard of a fleet in a real Prometheus that scrapes a real `writ fleet serve`.
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { longCase } from '../../kit/assert/long-case.js';
import type { TempDir } from '../../kit/disk/temp-dir.js';
import { bundleAt } from '../../kit/fleet/fleet-bench.js';
import { servedFleet } from '../../kit/fleet/served-fleet.js';
import { freePort } from '../../kit/programs/free-port.js';
import { needs } from '../../kit/programs/real-programs.js';

const run = promisify(execFile);
const packaging = join(import.meta.dirname, '../../../../packaging');
const rulesDirectory = join(packaging, 'prometheus');

interface Prometheus extends AsyncDisposable {
  /** @returns `data` of its response */
  ask(path: string): Promise<unknown>;
}

async function startPrometheus(dir: TempDir, fleetUrl: string, token: string): Promise<Prometheus> {
  writeFileSync(dir.join('prometheus.token'), token, { mode: 0o600 });
  writeFileSync(
    dir.join('prometheus.yml'),
    `global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }
rule_files: [${join(rulesDirectory, 'writ-fleet.rules.yml')}]
scrape_configs:
  - job_name: writ-fleet
    authorization: { credentials_file: ${dir.join('prometheus.token')} }
    static_configs: [{ targets: ["${new URL(fleetUrl).host}"] }]
`,
  );
  const url = `http://127.0.0.1:${await freePort()}`;
  const child: ChildProcess = spawn(
    'prometheus',
    [
      `--config.file=${dir.join('prometheus.yml')}`,
      `--storage.tsdb.path=${dir.join('data')}`,
      `--web.listen-address=${new URL(url).host}`,
    ],
    { stdio: 'ignore' },
  );
  return {
    ask: async (path) => {
      const answer = await fetch(url + path);
      const { status, data, error } = (await answer.json()) as Record<string, unknown>;
      assert.equal(status, 'success', `${path}: ${error}`);
      return data;
    },
    [Symbol.asyncDispose]: async () => {
      const gone = once(child, 'exit');
      if (child.exitCode === null && child.kill('SIGKILL')) await gone;
    },
  };
}

async function until<T>(what: string, read: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < 600; tries++) {
    const found = await read().catch(() => undefined);
    if (found !== undefined) return found;
    await sleep(200);
  }
  throw new Error(`no ${what} in two minutes`);
}

/** @returns every expression of the dashboard, with its variables as Grafana replaces them */
function dashboardExpressions(): string[] {
  const dashboard = JSON.parse(readFileSync(join(packaging, 'grafana', 'writ-fleet.json'), 'utf8')) as {
    panels: { targets: { expr: string }[] }[];
  };
  const filled = (expr: string): string =>
    expr.replaceAll('$job', 'writ-fleet').replaceAll('$__rate_interval', '1m');
  return dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => filled(expr)));
}

describe('a fleet in Prometheus', { ...needs('prometheus', 'prometheus'), ...longCase }, () => {
  it('has alarms that promtool accepts, and each fires in its case', async () => {
    await run('promtool', ['check', 'rules', 'writ-fleet.rules.yml'], { cwd: rulesDirectory });
    const tried = await run('promtool', ['test', 'rules', 'writ-fleet.test.yml'], { cwd: rulesDirectory });
    assert.match(tried.stdout, /SUCCESS/);
  });

  it('fires when a host refuses a release, is scraped by a token, and fills every panel of the dashboard', async () => {
    await using fleet = await servedFleet();
    const [one, two] = [await fleet.host('web-1'), await fleet.host('web-2')];
    await one.report({ bundles: [bundleAt(42)] });
    const offered = { serial: 43, state: 'refused', code: 'CHECK_FAILED', atMs: 1 } as const;
    const trust = [{ role: 'timestamp', version: 1, expiresAtMs: Date.now() + 3_600_000 }];
    await two.report({ bundles: [bundleAt(42, { offered })], trust });
    await using prometheus = await startPrometheus(
      fleet.dir,
      fleet.url,
      await fleet.token('--for', 'people'),
    );
    const firing = await until('alarm', async () => {
      const { alerts } = (await prometheus.ask('/api/v1/alerts')) as {
        alerts: { state: string; labels: Record<string, string>; annotations: Record<string, string> }[];
      };
      return alerts.find(
        ({ labels, state }) => labels['alertname'] === 'WritFleetReleaseRefused' && state === 'firing',
      );
    });
    assert.equal(firing.labels['code'], 'CHECK_FAILED');
    assert.equal(firing.annotations['summary'], '1 places: refused for CHECK_FAILED');
    const { groups } = (await prometheus.ask('/api/v1/rules')) as {
      groups: { rules: { health: string; lastError?: string }[] }[];
    };
    const rules = groups.flatMap((group) => group.rules);
    assert.ok(rules.length >= 15);
    assert.deepEqual(
      rules.filter(({ health, lastError }) => health === 'err' || lastError !== undefined),
      [],
    );
    const expressions = dashboardExpressions();
    assert.ok(expressions.length > 20);
    for (const expression of expressions)
      await until(`result of ${expression}`, async () => {
        const query = `/api/v1/query?query=${encodeURIComponent(expression)}`;
        const { result } = (await prometheus.ask(query)) as { result: unknown[] };
        return result.length > 0 ? result : undefined;
      });
  });
});
