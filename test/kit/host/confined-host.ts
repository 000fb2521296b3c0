// A host with checks in the real bubblewrap, and the output of its check. Requires bwrap.
import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import type { CheckConfig } from '../../../src/core/config/config.js';
import { defaultHookSandbox, type HookSandboxSettings } from '../../../src/core/config/hook-sandbox.js';
import { type TestHost, type TestHostOptions, testHost } from './test-host.js';

/**
 * @param script of `sh`; its arguments are {candidate}, {bundle}, {current} and {scratch}
 * @param box members that replace those of the default sandbox
 */
export function shellCheck(
  script: string,
  box: Partial<HookSandboxSettings> = {},
  more: Partial<CheckConfig> = {},
): CheckConfig {
  const run = ['sh', '-c', script, 'sh', '{candidate}', '{bundle}', '{current}', '{scratch}'] as const;
  return { kind: 'run', name: 'c', run, timeoutMs: 60_000, box: { ...defaultHookSandbox, ...box }, ...more };
}

/**
 * @returns a host with one check, on the disk
 * @example using test = confinedHost(shellCheck('exit 1'));
 */
export function confinedHost(check: CheckConfig, more: TestHostOptions = {}): TestHost {
  return testHost({
    bundles: [{ name: 'access', checks: [check] }],
    // A directory in memory is below /dev, which a sandbox replaces.
    above: tmpdir(),
    ...more,
    config: { sandbox: 'required', ...more.config },
  });
}

export interface Judged {
  readonly outcome: string;
  readonly code: string | undefined;
  /** Output of the check; '' without a problem. */
  readonly text: string;
  readonly reason: string;
  readonly hint: string;
}

/** Publishes `version SERIAL` as a release of `access` and pulls it. */
export async function judge(test: TestHost, serial = 1): Promise<Judged> {
  await test.publish('access', { 'policy.txt': `version ${serial}\n` }, { serial });
  return await judged(test);
}

/** @returns the outcome of `access` after a pull; missing texts are '' */
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

/** @returns the result of a script that runs as the check of a first release; the check fails, so that its output is reported */
export async function runInSandbox(script: string, box: Partial<HookSandboxSettings> = {}): Promise<Judged> {
  using test = confinedHost(shellCheck(`{ ${script}\n} 2>&1; exit 1`, box));
  return await judge(test);
}
