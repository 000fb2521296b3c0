// A host whose checks run in the real bubblewrap, and what a check found there. Needs bwrap.
import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import type { CheckConfig } from '../../../src/core/config/config.js';
import { defaultHookSandbox, type HookSandboxSettings } from '../../../src/core/config/hook-sandbox.js';
import { type TestHost, type TestHostOptions, testHost } from './test-host.js';

/** Its arguments are {candidate}, {bundle}, {current} and {scratch}. */
export function shellCheck(
  script: string,
  box: Partial<HookSandboxSettings> = {},
  more: Partial<CheckConfig> = {},
): CheckConfig {
  const run = ['sh', '-c', script, 'sh', '{candidate}', '{bundle}', '{current}', '{scratch}'] as const;
  return { kind: 'run', name: 'c', run, timeoutMs: 60_000, box: { ...defaultHookSandbox, ...box }, ...more };
}

/** @example using test = confinedHost(shellCheck('exit 1')); */
export function confinedHost(check: CheckConfig, more: TestHostOptions = {}): TestHost {
  return testHost({
    bundles: [{ name: 'access', checks: [check] }],
    // What is in memory lies below /dev, of which a sandbox has its own.
    above: tmpdir(),
    ...more,
    config: { sandbox: 'required', ...more.config },
  });
}

export interface Judged {
  readonly outcome: string;
  readonly code: string | undefined;
  /** What the check wrote, or why there was no verdict. */
  readonly text: string;
  readonly reason: string;
  readonly hint: string;
}

/** Publishes this serial and pulls it. */
export async function judge(test: TestHost, serial = 1): Promise<Judged> {
  await test.publish('access', { 'policy.txt': `version ${serial}\n` }, { serial });
  return await judged(test);
}

/** Pulls what is published. */
export async function judged(test: TestHost): Promise<Judged> {
  const { bundles } = await test.pull();
  const [bundle] = bundles;
  const { problem } = bundle ?? assert.fail();
  const { output = '', reason = '' } = (problem?.facts ?? {}) as { output?: string; reason?: string };
  return {
    outcome: bundle?.outcome ?? '',
    code: problem?.code,
    text: output,
    reason,
    hint: problem?.hint ?? '',
  };
}

/** Runs a script as the check of a first release; it shows what it found by refusing. */
export async function lookAround(script: string, box: Partial<HookSandboxSettings> = {}): Promise<Judged> {
  using test = confinedHost(shellCheck(`{ ${script}\n} 2>&1; exit 1`, box));
  return await judge(test);
}
