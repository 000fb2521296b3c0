// What commands need of the agent's own code, each part imported when it is called and not before: `writ status`
// must not load a TUF client. The only place in cli that names modules of the agent's run time.

export type { LookAlone } from '../../agent/control/look-alone.js';

export const agentModules = {
  agent: () => import('../../agent/agent.js'),
  /** The checks of a configuration on directories, without a host. */
  checkSource: () => import('../../agent/checks/check-source.js'),
  diff: () => import('../../agent/control/diff-policy.js'),
  doctor: () => import('../../agent/doctor/doctor.js'),
  /** What the files of a host say when no agent runs; loads no network and no schema code. */
  fromDisk: () => import('../../agent/control/from-disk.js'),
  /** Looks at releases in their bake time, without a running agent. */
  lookAlone: () => import('../../agent/control/look-alone.js'),
  /** Jobs done without a running agent, under the same lock. */
  withoutAgent: () => import('../../agent/control/without-agent.js'),
} as const;
