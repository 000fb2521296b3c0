// Decides whether a host without a working sandbox is a problem, and what the operator can change on it. Pure; sandbox.ts tries the
// sandbox.
import type { AgentConfig } from '../../core/config/config.js';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { SandboxStatus } from '../../core/status/status.js';

/** @returns how many commands of a configuration run in the sandbox: checks, canaries, loaders and probes */
export function countConfined({ bundles, workers }: Pick<AgentConfig, 'bundles' | 'workers'>): number {
  const checks = bundles.flatMap((bundle) => bundle.checks.filter((one) => one.kind === 'run'));
  const hooks = workers.flatMap(({ load, probe }) => [load, probe].filter((one) => one !== undefined));
  const canaries = workers.filter(({ canary }) => canary !== undefined);
  return [...checks, ...hooks].filter(({ sandbox }) => sandbox !== 'off').length + canaries.length;
}

export interface SandboxUse {
  /** As countConfined. */
  readonly commands: number;
  /** True if a sandbox worked on this host before, so that its failure is a change. */
  readonly hasWorked: boolean;
}

/**
 * A host that never had a sandbox under `auto`, as in a container, has no problem.
 * @returns SANDBOX_MISSING or SANDBOX_BROKEN; undefined if the sandbox works, nothing changed, or no command needs one
 */
export function findSandboxError(
  status: SandboxStatus,
  { commands, hasWorked }: SandboxUse,
): WritError | undefined {
  const { mode, state, reason = 'unknown', withoutIt, hint } = status;
  if (commands === 0 || (state !== 'missing' && state !== 'unusable')) return undefined;
  if (mode === 'auto' && !hasWorked) return undefined;
  const code = state === 'missing' ? 'SANDBOX_MISSING' : 'SANDBOX_BROKEN';
  const [count, run, refused] =
    commands === 1 ? ['1 command', 'runs', 'does not run'] : [`${commands} commands`, 'run', 'do not run'];
  const effect = withoutIt === 'unconfined' ? `${run} without a sandbox, which worked here before` : refused;
  return new WritError(code, `no command can be confined (${reason}): ${count} ${effect}`, {
    facts: { reason, commands },
    ...given({ hint }),
  });
}

/** Kernel settings that forbid user namespaces to ordinary users: the forbidding value, and the change that permits them. */
const namespaceSettings = [
  {
    path: 'kernel/apparmor_restrict_unprivileged_userns',
    forbids: '1',
    permit:
      'give bwrap an AppArmor profile with `userns,`, or set `kernel.apparmor_restrict_unprivileged_userns=0`',
  },
  {
    path: 'kernel/unprivileged_userns_clone',
    forbids: '0',
    permit: 'set `kernel.unprivileged_userns_clone=1`',
  },
  {
    path: 'user/max_user_namespaces',
    forbids: '0',
    permit: 'set `user.max_user_namespaces` above 0',
  },
] as const;

/**
 * @param readSetting returns the text of a file below /proc/sys; undefined if the kernel does not have the setting
 * @returns the change to make if the kernel forbids user namespaces; undefined if it permits them
 */
export function findNamespaceHint(readSetting: (path: string) => string | undefined): string | undefined {
  const found = namespaceSettings.filter(({ path, forbids }) => readSetting(path)?.trim() === forbids);
  if (found.length === 0) return undefined;
  return `This host forbids user namespaces: ${found.map(({ permit }) => permit).join('; ')}. See docs/sandbox.md.`;
}
