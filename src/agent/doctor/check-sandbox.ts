// `writ doctor`, check `sandbox`: whether commands are confined as configured. The agent's own test outranks a test by this command,
// because the two may run as different users. `judgeSandbox` is pure.
import type { SandboxMode } from '../../core/config/config.js';
import { isWritError } from '../../core/errors.js';
import type { SandboxStatus } from '../../core/status/status.js';
import { silentLog } from '../../platform/telemetry/silent-log.js';
import { createSandbox } from '../hooks/sandbox.js';
import { countConfined } from '../hooks/sandbox-rules.js';
import { agentReportOf, type Checks, type DoctorContext } from './doctor-context.js';
import { type Judged, ok, warn } from './judged.js';

/** @returns the check `sandbox`. It tests the sandbox only when it runs. */
export function sandboxChecks(context: DoctorContext): Checks {
  return [['sandbox', async () => judgeSandbox(await sandboxFacts(context))]];
}

export interface SandboxFacts {
  readonly mode: SandboxMode;
  /** The number of commands that would run in it: checks, canaries, loaders, probes. */
  readonly commands: number;
  /** The result of a test command; left out without a test. */
  readonly seen?: Omit<SandboxStatus, 'mode'>;
  /** `agent` if the agent ran the test; left out if this process did, perhaps as another user. */
  readonly by?: 'agent';
  /** The scope of the `memory` limit, known to the agent alone because it depends on its control groups. Left out without its report. */
  readonly memory?: SandboxStatus['memory'] | undefined;
}

/** Takes the result of the agent's test, else runs a command without effect in a sandbox of this process. */
async function sandboxFacts({ config, hostStatus }: DoctorContext): Promise<SandboxFacts> {
  const mode = config?.sandbox ?? 'auto';
  const commands = config === undefined ? 0 : countConfined(config);
  if (mode === 'off') return { mode, commands };
  const trial = agentReportOf({ hostStatus })?.sandbox;
  if (trial !== undefined && trial.state !== 'unknown' && trial.state !== 'off')
    return { mode, commands, seen: trial, by: 'agent', memory: trial.memory };
  // `auto` whatever is configured, because a missing program is a finding here and not an error.
  // Without control groups, because a check must not move this process into one.
  const findGroups = (): Promise<undefined> => Promise.resolve(undefined);
  const sandbox = createSandbox({ mode: 'auto', log: silentLog(), findGroups });
  try {
    await sandbox.open();
  } catch (error) {
    // The test command did not end by itself.
    if (!isWritError(error)) throw error;
  }
  return { mode, commands, seen: sandbox.status(), memory: hostStatus.report?.sandbox?.memory };
}

/** @returns ok if a test command was confined; else a failure in mode `required`, a warning in the others, skipped without commands */
export function judgeSandbox({ mode, commands, seen, by, memory }: SandboxFacts): Judged {
  const count = commands === 1 ? '1 command' : `${commands} commands`;
  if (mode === 'off') {
    if (commands === 0) return ok('off: nothing needs it');
    return warn(`off: ${count} with the rights of the agent`, 'set `sandbox: auto` or `required`');
  }
  if (seen?.state === 'on') return judgeBounds(seen, { commands, by, memory });
  // Without commands, a missing sandbox has no effect.
  const state = commands === 0 ? 'skip' : mode === 'required' ? 'FAIL' : 'warn';
  const effect = mode === 'required' ? 'cannot run' : 'run without a sandbox';
  const what = commands === 0 ? 'nothing needs it yet' : `${count} that ${effect}`;
  const reason = `${seen?.reason ?? 'it was not tested'}${testedBy(by)}`;
  if (seen?.state === 'missing')
    return { state, text: `${reason}: ${what}`, next: 'apt-get install bubblewrap util-linux' };
  return {
    state,
    text: `no command can be confined (${reason}): ${what}`,
    next: seen?.hint ?? 'see docs/sandbox.md',
  };
}

function judgeBounds(
  { user, userNamespace, systemCalls }: NonNullable<SandboxFacts['seen']>,
  { commands, by, memory }: Pick<SandboxFacts, 'commands' | 'memory'> & { readonly by: SandboxFacts['by'] },
): Judged {
  const confinedAs = user !== 'agent' ? user : by === 'agent' ? 'the user of the agent' : 'this user';
  const text = `a test command was confined as ${confinedAs}, user namespace: ${userNamespace}${testedBy(by)}`;
  if (systemCalls === 'open' && commands > 0)
    return warn(`${text}; system calls are not filtered: vsock and io_uring are open`, 'see docs/sandbox.md');
  // RLIMIT_DATA counts private memory only. A note and no warning, because a container may be unable to provide a control group.
  return ok(memory === 'each-process' ? `${text}; \`memory\` does not bound shared memory (memfd)` : text);
}

function testedBy(by: SandboxFacts['by']): string {
  return by === 'agent' ? ', tested by the agent' : '';
}
