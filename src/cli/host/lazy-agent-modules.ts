// Lazy modules of the agent for commands. Each is imported at its first call, because `writ status` must not load a TUF client.
// No other file in cli names modules that run an agent.

export type { StandaloneBakeRound } from '../../agent/control/standalone-bake-round.js';

export const agentModules = {
  agent: () => import('../../agent/agent.js'),
  /** The checks of a configuration on directories, without a host. */
  checkSource: () => import('../../agent/checks/check-source.js'),
  diff: () => import('../../agent/control/diff-policy.js'),
  doctor: () => import('../../agent/doctor/doctor.js'),
  /** Reads the files of a host when no agent runs; loads no network and no schema code. */
  fromDisk: () => import('../../agent/control/offline-status.js'),
  /** Observes releases in their bake time, without a running agent. */
  lookAlone: () => import('../../agent/control/standalone-bake-round.js'),
  /** Jobs of a standalone run, under the same lock. */
  withoutAgent: () => import('../../agent/control/standalone-commands.js'),
} as const;
