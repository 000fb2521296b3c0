// The pages of `writ help CODE` for codes that are no errors: states of a host, of a repository that a server shows, and of a
// fleet. Data only.
import type { FleetFinding } from '../../core/fleet/answers.js';
import type { HostStateCode, ServerStateCode } from '../../core/status/host-health.js';

export interface StatePage {
  readonly meaning: string;
  readonly effect: string;
  readonly hint: string;
}

/** States that `writ status` and `writ health` print in brackets like error codes. */
export const hostStates: Readonly<Record<HostStateCode, StatePage>> = {
  NOTHING_ACTIVE: {
    meaning: 'The host has no active policy: no release was activated yet.',
    effect: 'None is active. Workers use what they had before.',
    hint: '`writ pull` activates the first release, or reports why it cannot.',
  },
  NO_AGENT: {
    meaning: 'No agent runs on this host, so that nothing is pulled automatically.',
    effect: 'The active policy stays. New releases and withdrawals arrive only by `writ pull`.',
    hint: 'Start the agent (`systemctl start writ-agent`). If a timer runs `writ pull`, nothing is wrong.',
  },
  STALE: {
    meaning:
      'The host has not verified for longer than `staleAfter` that its metadata is current: the repository is not reached, or an agent that should poll does not.',
    effect: 'The active policy stays. After `maxStale` the commands of `onStale` are run.',
    hint: '`writ pull` reports why the repository is not reached.',
  },
  FROZEN: {
    meaning:
      'A role of the metadata has expired: the server does not sign snapshot and timestamp again, people have not signed their role, or a cache serves an old copy.',
    effect: 'The active policy stays. No newer release is accepted until the role is signed.',
    hint: 'Run `writ repo status` where the repository is, and `writ refresh` or `writ sign --role` for the expired role. `writ help METADATA_EXPIRED` has more.',
  },
  REFUSED: {
    meaning:
      'The host refuses the metadata that the repository serves: a signature, a version or a digest is wrong.',
    effect: 'The active policy stays. No newer release is accepted until the metadata verifies.',
    hint: '`writ status` shows the code of the refusal beside this one. `writ help CODE` explains it.',
  },
  EXPIRES_SOON: {
    meaning: 'A role of the metadata expires soon, and hosts then accept nothing new.',
    effect: 'The active policy stays, also after the expiry.',
    hint: 'For snapshot and timestamp: `writ refresh`, or start the server with the online keys. For other roles: `writ sign --role`, or `writ root rotate` for the root.',
  },
};

const unchanged = 'The active policy of each host stays.';

/** States in /healthz of `writ serve`; EXPIRES_SOON is one of a host too. */
export const serverStates: Readonly<Record<Exclude<ServerStateCode, HostStateCode>, StatePage>> = {
  PUBLISH_PENDING: {
    meaning:
      'A newer file of a role is in the repository and is not published: it waits for the online keys, or hosts would refuse it.',
    effect: `${unchanged} Hosts get the releases of that file once it is published.`,
    hint: 'Run `writ refresh` where the online keys are. If the message names a cause, as a missing archive, correct it first. `writ repo check` lists each file with its cause.',
  },
};

/** Findings of `writ fleet status`, of the fleet page and of webhooks; REFUSED is a state of a host too. */
export const fleetStates: Readonly<Record<Exclude<FleetFinding['code'], HostStateCode>, StatePage>> = {
  NO_HOSTS: {
    meaning: 'No host is enrolled at this fleet server.',
    effect: unchanged,
    hint: '`writ fleet token` makes an enrolment token. Configure it as `fleet` on each host.',
  },
  ROLE_EXPIRED: {
    meaning: 'A role of the metadata has expired.',
    effect: `${unchanged} Hosts accept no newer release until the role is signed.`,
    hint: 'Run `writ refresh` for snapshot and timestamp, and `writ sign --role` for another role.',
  },
  ROLE_ENDS: {
    meaning: 'A role of the metadata expires soon, and hosts then accept nothing new.',
    effect: `${unchanged} This holds after the expiry too.`,
    hint: 'Run `writ refresh` for snapshot and timestamp, and `writ sign --role` for another role.',
  },
  WITHDRAWN_IN_USE: {
    meaning: 'Hosts run a release that was withdrawn.',
    effect: 'These hosts still use the withdrawn policy.',
    hint: '`writ fleet hosts` lists them. `writ pull` on a host reports why it cannot leave the release.',
  },
  BEHIND: {
    meaning:
      'Hosts run an older release than the newest one of their channel, for longer than it takes to spread.',
    effect: 'These hosts still use the older policy.',
    hint: '`writ fleet hosts` lists them. `writ status` on a host reports why the newest release is not active.',
  },
  REPOSITORY_UNREAD: {
    meaning:
      'The fleet server could not read a repository, so that it compares hosts with an older list of releases.',
    effect: unchanged,
    hint: 'The message has the error code: `writ help CODE` explains it. Check the address of the repository and the network of the fleet server.',
  },
  ROLLED_BACK: {
    meaning:
      'Hosts activated a release and restored the one before, because a check, a loader or a worker failed.',
    effect: 'These hosts use the policy before.',
    hint: 'The message has the codes: `writ help CODE` explains each. `writ history` on a host has the details.',
  },
  BLOCKED: {
    meaning: 'Hosts try no release after repeated failures.',
    effect: unchanged,
    hint: 'Correct the cause that `writ status` on the host shows, then run `writ resume` there.',
  },
  HOST_CRITICAL: {
    meaning: 'Hosts report a critical finding of their own, as `writ health` prints it.',
    effect: '`writ status` on the host shows the active policy.',
    hint: '`writ help CODE` explains the codes of the message. Run `writ health` on the host.',
  },
  CLONED: {
    meaning: 'Several machines report with the same key, so that no report counts.',
    effect: unchanged,
    hint: 'Remove the state directory of the copy of the machine, so that it gets a key of its own and enrols again.',
  },
  SILENT: {
    meaning: 'Hosts have not reported for longer than two of their intervals.',
    effect: 'Their policy is unknown to the fleet server.',
    hint: 'Check that the host runs, that its agent runs, and that it reaches the fleet server. `writ fleet host retire` removes one that is gone.',
  },
  UNCONFIRMED: {
    meaning: 'Hosts run a release that their workers have not confirmed.',
    effect: 'The release is active. It is not proven that the workers use it.',
    hint: '`writ status` on the host lists its workers. `writ help WORKER_UNCONFIRMED` has more.',
  },
  FAILED: {
    meaning: 'Hosts could not activate a release, for a reason that does not reject it.',
    effect: unchanged,
    hint: 'The message has the codes: `writ help CODE` explains each. The hosts try again automatically.',
  },
  DEFERRED: {
    meaning: 'Hosts put a release off, as during a pause or because a worker is not ready.',
    effect: unchanged,
    hint: 'The message has the codes. The hosts try again automatically; `writ resume` ends a pause.',
  },
  WAITING_FOR_APPROVAL: {
    meaning: 'Hosts have enrolled and are in no count until an operator approves them.',
    effect: unchanged,
    hint: '`writ fleet hosts --where state=waiting` lists them, and `writ fleet host approve` approves one.',
  },
};

/** Findings that a report of a host has in place of other codes. */
export const reportStates: Readonly<Record<'REPORT_TRUNCATED' | 'OTHER', StatePage>> = {
  REPORT_TRUNCATED: {
    meaning:
      'The report of the host was larger than a fleet server accepts, so that parts of it were left out.',
    effect: unchanged,
    hint: '`writ status` on the host shows everything. Shorten the labels, or configure a lower `fleet.detail`.',
  },
  OTHER: {
    meaning: 'The host has a problem with a code that its version of Writ does not send to a fleet server.',
    effect: '`writ status` on the host shows the active policy.',
    hint: 'Run `writ health` on the host: it prints the code with its text.',
  },
};
