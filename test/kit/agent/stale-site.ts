// A host with a policy that becomes stale, with hooks that record when they ran.
import * as fs from 'node:fs';
import { type ContactKeeper, freshnessOf, keepContact } from '../../../src/agent/freshness/contact-memory.js';
import { createStaleWatch, type StaleWatch } from '../../../src/agent/freshness/stale-watch.js';
import type { AgentFacts } from '../../../src/agent/report/status-facts.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { FreshnessConfig, HookConfig } from '../../../src/core/config/config.js';
import type { ErrorCode } from '../../../src/core/errors.js';
import type { FreshnessReport } from '../../../src/core/status/freshness.js';
import { type TempDir, tempDir } from '../disk/temp-dir.js';
import { type TestHost, testHost } from '../host/test-host.js';

export const minuteMs = 60_000;
export const hourMs = 3_600_000;
export const signal: AbortSignal = new AbortController().signal;

/** @returns a hook that runs the script in `sh` with a timeout of one minute */
export function shell(script: string): HookConfig {
  return { run: ['sh', '-c', script], timeoutMs: 60_000 };
}

interface Site extends Disposable {
  readonly test: TestHost;
  readonly contact: ContactKeeper;
  /** Records an attempt to refresh now. */
  attempt(code?: ErrorCode, role?: string): void;
  check(): Promise<'changed' | 'same'>;
  /** Restarts the agent, in another boot if `boot` differs. */
  restart(boot?: string): void;
  freshness(): FreshnessReport;
  /** Lines that the hooks have written so far. */
  lines(): string[];
}

/** @returns a host with a policy that was confirmed as current just now; hooks write to the file `out` */
export function site(config: (out: string) => Partial<FreshnessConfig>): Site {
  const dir: TempDir = tempDir();
  const out = dir.join('out');
  const freshness = {
    staleAfterMs: 15 * minuteMs,
    maxStaleMs: hourMs,
    release: { staleAfterMs: 15 * minuteMs },
    ...config(out),
  };
  const test = testHost({ config: { freshness } });
  let host: Host = test.host;
  let contact = keepContact(undefined, test.clock);
  let watch: StaleWatch = createStaleWatch('boot-1');
  contact.note({ atMs: test.clock.nowMs() });
  return {
    test,
    get contact() {
      return contact;
    },
    attempt: (code, role) => {
      const error = code && { code, facts: role === undefined ? {} : { role } };
      contact.note({ atMs: test.clock.nowMs(), ...(error ? { error } : {}) });
    },
    check: () => watch.check(host, contact, signal),
    restart: (boot = 'boot-1') => {
      const known = statusReport(host, { ...facts, contact: contact.read() });
      host = test.reopen();
      contact = keepContact(known, test.clock);
      watch = createStaleWatch(boot);
    },
    freshness: () => freshnessOf(host, contact.read()),
    lines: () => (fs.existsSync(out) ? fs.readFileSync(out, 'utf8').trim().split('\n') : []),
    [Symbol.dispose]: () => {
      test[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

export const facts: Omit<AgentFacts, 'contact'> = { version: '0.1.0', state: 'run', problems: [] };
export const stop = (out: string): Partial<FreshnessConfig> => ({ onStale: shell(`echo stop >> ${out}`) });

/** Advances the clock by 61 minutes, then records a failed attempt to reach the server. */
export async function growOld(it: Site, code: ErrorCode = 'SERVER_UNREACHABLE'): Promise<void> {
  await it.test.clock.advance(61 * minuteMs);
  it.attempt(code);
}
