// One sentence about a fleet, with its level: judged from counts by a table of rules, the worst first. Pure; who counted, and
// how, is the store's.
import { grouped } from '../text/grouped.js';
import type {
  FleetFinding,
  FleetSummary,
  HostCounts,
  OfferGroup,
  ReleaseCount,
  RepositoryStatus,
} from './answers.js';
import type { OfferedState } from './report.js';
import type { SignedRole } from './signed-releases.js';

export type FleetFacts = Omit<FleetSummary, 'schema' | 'type' | 'level' | 'sentence' | 'findings'>;

type Rule = (facts: FleetFacts) => readonly FleetFinding[];

const rules: readonly Rule[] = [
  ...[
    expired,
    withdrawnInUse,
    offers('refused', 'REFUSED'),
    offers('rolled-back', 'ROLLED_BACK'),
    blocked,
    cloned,
  ],
  ...[nobody, silent, unconfirmed, offers('failed', 'FAILED'), offers('deferred', 'DEFERRED')],
  ...[behind, unread, roleEnds, waiting],
];

export function summarize(facts: FleetFacts): FleetSummary {
  const found = rules.flatMap((rule) => rule(facts));
  const findings = (['critical', 'warning'] as const).flatMap((level) =>
    found.filter((one) => one.level === level),
  );
  const [worst, ...others] = findings;
  const more =
    others.length === 0 ? '' : `, and ${others.length} more ${others.length === 1 ? 'thing' : 'things'}`;
  const clause = worst === undefined ? '' : worst.text[0]?.toUpperCase() + worst.text.slice(1);
  const sentence = worst === undefined ? allWell(facts) : `${clause}${more}. ${standing(facts)}`.trim();
  return { schema: 1, type: 'fleet.summary', ...facts, level: worst?.level ?? 'ok', sentence, findings };
}

const hour = 3_600_000;
/** As `writ health` has them: offline roles need people, online ones a server that runs. */
const marginMs: Readonly<Record<string, number>> = { timestamp: 24 * hour, snapshot: 72 * hour };
const offlineMarginMs = 14 * 24 * hour;

/** @returns whether somebody should sign this role again */
export function isNearEnd(role: string, leftMs: number): boolean {
  return leftMs < (marginMs[role] ?? offlineMarginMs);
}

export interface KnownRole extends SignedRole {
  /** With the repository, where there are several. */
  readonly name: string;
}

/** Of the repositories that the server reads; where none was read, as hosts have them. */
export function knownRoles({
  keys,
  repositories = [],
}: Pick<FleetFacts, 'keys' | 'repositories'>): readonly KnownRole[] {
  const known = repositories.flatMap(({ url, roles }) =>
    roles.map((one) => ({ ...one, name: repositories.length > 1 ? `${one.role} of ${url}` : one.role })),
  );
  return known.length > 0 ? known : keys.map((one) => ({ ...one, name: one.role }));
}

function expired(facts: FleetFacts): FleetFinding[] {
  return knownRoles(facts)
    .filter(({ expiresAtMs }) => expiresAtMs <= facts.atMs)
    .map(({ name }) => ({
      level: 'critical',
      code: 'ROLE_EXPIRED',
      text: `${name} has expired: hosts accept nothing new`,
    }));
}

function roleEnds(facts: FleetFacts): FleetFinding[] {
  return knownRoles(facts).flatMap(({ role, name, expiresAtMs }): FleetFinding[] => {
    const leftMs = expiresAtMs - facts.atMs;
    if (leftMs <= 0 || !isNearEnd(role, leftMs)) return [];
    return [
      { level: 'warning', code: 'ROLE_ENDS', text: `${name} expires in ${Math.floor(leftMs / hour)} h` },
    ];
  });
}

function withdrawnInUse({ releases }: FleetFacts): FleetFinding[] {
  return releases
    .filter(({ standing }) => standing === 'withdrawn')
    .map((one) => ({
      level: 'critical',
      code: 'WITHDRAWN_IN_USE',
      text: `${runText(one)}, which was withdrawn`,
      where: whereOf(one),
    }));
}

/** A release spreads for a while: hosts look every few minutes, and some of them are asked to wait longer. */
const spreadMs = 30 * 60_000;

function behind({ releases, repositories = [], atMs }: FleetFacts): FleetFinding[] {
  return releases.flatMap((one): FleetFinding[] => {
    const signed = signedOf(repositories, one);
    const isNew = signed.some(({ seenAtMs }) => atMs - seenAtMs < spreadMs);
    const [first] = signed;
    if (one.standing !== 'behind' || first === undefined || isNew) return [];
    const serials = [...new Set(signed.map(({ serial }) => serial))].join(' or ');
    const text = `${runText(one)} where ${serials} should be in use`;
    return [{ level: 'warning', code: 'BEHIND', text, where: whereOf(one) }];
  });
}

/** A reading that fails now and then is nobody's business. */
const unreadMs = 5 * 60_000;

function unread({ repositories = [], atMs }: FleetFacts): FleetFinding[] {
  return repositories.flatMap(({ url, failing, checkedAtMs }): FleetFinding[] => {
    if (failing === undefined) return [];
    const forMs = atMs - failing.sinceMs;
    if (checkedAtMs !== undefined && forMs < unreadMs) return [];
    const since =
      checkedAtMs === undefined
        ? 'was never read'
        : `has not been read for ${Math.floor(forMs / 60_000)} min`;
    return [{ level: 'warning', code: 'REPOSITORY_UNREAD', text: `${url} ${since} (${failing.code})` }];
  });
}

function signedOf(
  repositories: readonly RepositoryStatus[],
  { bundle, channel }: Pick<ReleaseCount, 'bundle' | 'channel'>,
): RepositoryStatus['releases'] {
  return repositories.flatMap(({ releases }) =>
    releases.filter((one) => one.bundle === bundle && one.channel === channel),
  );
}

function runText(one: ReleaseCount): string {
  const hosts = one.confirmed + one.notified + one.unconfirmed;
  return `${hostsText(hosts)} ${hosts === 1 ? 'runs' : 'run'} ${one.bundle} ${one.serial}`;
}

function whereOf({ bundle, channel, serial }: ReleaseCount): string {
  return `bundle=${bundle},channel=${channel},serial=${serial}`;
}

const verbs: Readonly<Record<OfferedState, string>> = {
  refused: 'refused',
  'rolled-back': 'took back',
  failed: 'failed to take',
  deferred: 'put off',
};

/** One finding for each release, what most hosts say first: its codes are in the groups. */
function offers(state: OfferedState, code: FleetFinding['code']): Rule {
  const level = state === 'refused' || state === 'rolled-back' ? 'critical' : 'warning';
  return ({ offers }) => {
    const groups = new Map<string, OfferGroup[]>();
    for (const one of offers.filter((group) => group.state === state)) {
      const release = JSON.stringify([one.bundle, one.channel, one.serial]);
      groups.set(release, [...(groups.get(release) ?? []), one]);
    }
    const counted = [...groups.values()].map((all) => ({
      all,
      hosts: all.reduce((sum, one) => sum + one.hosts, 0),
    }));
    return counted
      .toSorted((a, b) => b.hosts - a.hosts)
      .map(({ all, hosts }) => {
        const [first] = all as [OfferGroup];
        const codes = [...new Set(all.map((one) => one.code))].slice(0, 3).join(', ');
        const text = `${hostsText(hosts)} ${verbs[state]} ${first.bundle} ${first.serial} (${codes})`;
        const where = `state=${state},bundle=${first.bundle},channel=${first.channel},serial=${first.serial}`;
        return { level, code, text, where };
      });
  };
}

function blocked({ hosts }: FleetFacts): FleetFinding[] {
  if (hosts.blocked === 0) return [];
  const text = `${hostsText(hosts.blocked)} ${hosts.blocked === 1 ? 'is' : 'are'} blocked after repeated failures`;
  return [{ level: 'critical', code: 'BLOCKED', text, where: 'state=blocked' }];
}

function cloned({ hosts }: FleetFacts): FleetFinding[] {
  if (hosts.cloned === 0) return [];
  const text = `${hostsText(hosts.cloned)} ${hosts.cloned === 1 ? 'shares' : 'share'} a key with a clone`;
  return [{ level: 'critical', code: 'CLONED', text, where: 'state=cloned' }];
}

function nobody({ hosts, releases }: FleetFacts): FleetFinding[] {
  // Hosts are counted a moment before releases are.
  if (hosts.accepted > 0 || releases.length > 0) return [];
  return [{ level: 'warning', code: 'NO_HOSTS', text: 'no host is enrolled' }];
}

/** Each host is judged by its own interval: one that asked for a day keeps nobody else's silence from being seen. */
function silent({ hosts }: FleetFacts): FleetFinding[] {
  if (hosts.silent === 0) return [];
  const text = `${hostsText(hosts.silent)} ${hosts.silent === 1 ? 'is' : 'are'} silent`;
  return [{ level: 'warning', code: 'SILENT', text, where: 'state=silent' }];
}

function unconfirmed({ releases }: FleetFacts): FleetFinding[] {
  const hosts = releases.reduce((sum, one) => sum + one.unconfirmed, 0);
  if (hosts === 0) return [];
  const text = `a release is not proven in use in ${grouped(hosts)} ${hosts === 1 ? 'place' : 'places'}`;
  return [{ level: 'warning', code: 'UNCONFIRMED', text, where: 'state=unconfirmed' }];
}

function waiting({ hosts }: FleetFacts): FleetFinding[] {
  if (hosts.waiting === 0) return [];
  const text = `${hostsText(hosts.waiting)} ${hosts.waiting === 1 ? 'waits' : 'wait'} for approval`;
  return [{ level: 'warning', code: 'WAITING_FOR_APPROVAL', text, where: 'state=waiting' }];
}

/** How it stands besides: the newest release of the channel that has most hosts behind it. */
function standing(facts: FleetFacts): string {
  const shares = channelsOf(facts);
  const worst = shares.toSorted((a, b) => b.of - b.confirmed - (a.of - a.confirmed))[0];
  if (worst === undefined) return '';
  const { confirmed, notified, of, bundle, serial } = worst;
  const others =
    notified === 0 ? '' : `, ${grouped(notified)} ${notified === 1 ? 'has' : 'have'} nothing to confirm it`;
  const should = worst.basis === 'signed' ? ', the release that should be in use' : '';
  return `${grouped(confirmed)} of ${grouped(of)} confirmed ${bundle} ${serial}${should}${others}.`;
}

function allWell(facts: FleetFacts): string {
  const [first, ...others] = channelsOf(facts);
  if (first === undefined) return `${hostsText(facts.hosts.accepted)} enrolled, and no release in use yet.`;
  const all = [first, ...others];
  if (all.every((one) => one.confirmed === one.of)) {
    const isSigned = all.every(({ basis }) => basis === 'signed');
    const each = isSigned ? 'what should be in use of each bundle' : 'the newest release of each bundle';
    const one = isSigned ? `, the release that should be in use` : '';
    const what = others.length === 0 ? `${first.bundle} ${first.serial}${one}` : each;
    return `All ${hostsText(facts.hosts.accepted)} confirmed ${what}.`.replace(
      'All 1 host ',
      'The one host ',
    );
  }
  return standing(facts);
}

interface ChannelShare {
  readonly bundle: string;
  readonly serial: number;
  readonly of: number;
  readonly confirmed: number;
  /** Hosts that use it, where nobody can say so. */
  readonly notified: number;
  /** Which release is meant: the signed one, or the newest that hosts know. */
  readonly basis: 'signed' | 'heard';
}

function channelsOf({ releases, repositories = [] }: FleetFacts): ChannelShare[] {
  const channels = new Map<string, ReleaseCount[]>();
  for (const one of releases) {
    const name = JSON.stringify([one.bundle, one.channel]);
    channels.set(name, [...(channels.get(name) ?? []), one]);
  }
  return [...channels.values()].map((all) => {
    const [first] = all as [ReleaseCount];
    const signed = signedOf(repositories, first);
    const basis = signed.length > 0 && all.some((one) => one.standing !== 'unknown') ? 'signed' : 'heard';
    const newest = all.filter((one) =>
      basis === 'signed' ? one.standing === 'current' : one.place === 'newest',
    );
    const sum = (list: readonly ReleaseCount[], of: (one: ReleaseCount) => number): number =>
      list.reduce((total, one) => total + of(one), 0);
    return {
      bundle: first.bundle,
      serial: newest[0]?.serial ?? signed[0]?.serial ?? 0,
      basis,
      of: sum(all, (one) => one.confirmed + one.notified + one.unconfirmed),
      confirmed: sum(newest, (one) => one.confirmed),
      notified: sum(newest, (one) => one.notified),
    };
  });
}

function hostsText(count: HostCounts['accepted']): string {
  return `${grouped(count)} ${count === 1 ? 'host' : 'hosts'}`;
}
