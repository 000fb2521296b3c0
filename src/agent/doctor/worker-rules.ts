// Judgements of `writ doctor` about workers: who of a group is there and lives, whether its user can read policy, and
// what AppArmor makes of that. Facts in, one finding out; pure.
import type { WorkerState } from '../../core/cycle/cycle-report.js';
import type { Judged } from '../../core/status/doctor.js';

export interface MemberFacts {
  readonly worker: string;
  readonly liveness: 'alive' | 'dead' | 'unknown';
  /** As the last telling ended; left out when it was never told. */
  readonly state?: WorkerState | 'waiting';
}

export interface GroupFacts {
  readonly group: string;
  readonly driver: string;
  /** How many the configuration wants to be there. */
  readonly min: number;
  readonly members: readonly MemberFacts[];
  /** Why nobody could say who they are. */
  readonly unlisted?: string;
}

const maxNamed = 5;

export function judgeGroup({ group, driver, min, members, unlisted }: GroupFacts): Judged {
  if (unlisted !== undefined) return { state: 'FAIL', text: `${group}: ${unlisted}`, next: 'writ status' };
  if (members.length === 0) {
    const text = `${group}: nobody is there just now (${driver}${min > 0 ? `, at least ${min} wanted` : ''})`;
    return { state: min > 0 ? 'FAIL' : 'warn', text, next: 'start the workers, or mend what names them' };
  }
  const dead = members.filter(({ liveness }) => liveness === 'dead');
  const living = members.length - dead.length;
  if (dead.length > 0) {
    const state = living === 0 || living < min ? 'FAIL' : 'warn';
    const text = `${group}: ${dead.length} of ${members.length} dead: ${named(dead)}`;
    return { state, text, next: 'look into their log; they are told when they come back' };
  }
  if (members.length < min)
    return {
      state: 'FAIL',
      text: `${group}: ${members.length} there, at least ${min} wanted`,
      next: 'start the others',
    };
  const due = members.filter(
    ({ state }) => state === 'unreachable' || state === 'refused' || state === 'waiting',
  );
  if (due.length > 0) {
    const text = `${group}: ${due.length} of ${members.length} not told what is active: ${named(due)}`;
    return { state: 'warn', text, next: 'writ status' };
  }
  const alive = members.every(({ liveness }) => liveness === 'alive') ? 'all alive' : 'of unknown life';
  return {
    state: 'ok',
    text: `${group}: ${members.length} ${members.length === 1 ? 'worker' : 'workers'}, ${alive}`,
  };
}

function named(members: readonly MemberFacts[]): string {
  const names = members.slice(0, maxNamed).map(({ worker }) => worker);
  return members.length > maxNamed ? `${names.join(', ')}, ...` : names.join(', ');
}

/** A part of the way to policy, as the kernel judges it. */
export interface PathPart {
  readonly path: string;
  readonly kind: 'directory' | 'file';
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

export interface ReaderFacts {
  readonly group: string;
  readonly uid: number;
  readonly gids: readonly number[];
}

/** @returns the first part that this user cannot pass or read, by owner, group and mode; lists of access are not seen */
export function unreadablePart(reader: ReaderFacts, parts: readonly PathPart[]): PathPart | undefined {
  if (reader.uid === 0) return undefined;
  return parts.find(({ uid, gid, mode, kind }) => {
    const shift = uid === reader.uid ? 6 : reader.gids.includes(gid) ? 3 : 0;
    const wanted = kind === 'directory' ? 1 : 4;
    return ((mode >> shift) & wanted) !== wanted;
  });
}

export interface PermissionFacts {
  readonly policy: string;
  /** Left out when nothing is active. */
  readonly parts?: readonly PathPart[];
  readonly readers: readonly ReaderFacts[];
  /** All that tell somebody. */
  readonly groups: readonly string[];
}

export function judgePermissions({ policy, parts, readers, groups }: PermissionFacts): Judged {
  if (parts === undefined) return { state: 'skip', text: 'no policy is active yet' };
  if (readers.length === 0)
    return { state: 'skip', text: `${policy}: the users of the workers are not known` };
  const unknown = groups.filter((name) => !readers.some(({ group }) => group === name));
  for (const reader of readers) {
    const part = unreadablePart(reader, parts);
    if (part === undefined) continue;
    const what = part.kind === 'directory' ? 'pass' : 'read';
    const text = `${reader.group} (uid ${reader.uid}) cannot ${what} ${part.path} (mode ${(part.mode & 0o7777).toString(8)})`;
    return { state: 'FAIL', text, next: `namei -l ${part.path}; \`mode\` and \`group\` of a bundle` };
  }
  const users = [...new Set(readers.map(({ uid }) => uid))].join(', ');
  const rest = unknown.length === 0 ? '' : `; under which user ${unknown.join(', ')} runs is not known`;
  return { state: 'ok', text: `${policy} can be read by uid ${users}${rest}` };
}

export interface ConfinedFacts {
  readonly group: string;
  readonly pid: number;
  /** As the kernel tells it: `unconfined`, or `/usr/sbin/named (enforce)`. */
  readonly profile: string;
  /** Some profile or abstraction of this host names the policy directory. */
  readonly mentioned: 'yes' | 'no';
}

export function judgeConfinement(workers: readonly ConfinedFacts[], policy: string): Judged {
  if (workers.length === 0) return { state: 'skip', text: 'no worker whose profile can be seen' };
  const confined = workers.filter(({ profile }) => profile.endsWith('(enforce)'));
  const [first] = confined;
  if (first === undefined) return { state: 'ok', text: 'no worker is confined' };
  const text = `${first.group} (pid ${first.pid}) is confined by ${first.profile}`;
  if (confined.every(({ mentioned }) => mentioned === 'yes'))
    return { state: 'ok', text: `${text}, which knows of ${policy}` };
  return {
    state: 'warn',
    text: `${text}, where nothing names ${policy}`,
    next: 'see AppArmor in docs/systemd.md',
  };
}
