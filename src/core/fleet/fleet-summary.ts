// The summary of a fleet: one sentence with a level. A table of rules finds the problems in the counts, the worst first. Pure;
// src/fleet counts.
import type { FleetFacts, FleetFinding, FleetSummary, OfferGroup, ReleaseCount } from './answers.js';
import { hostsOfRelease } from './delivery-state.js';
import { allWell, hostsText, signedOf, standingText } from './fleet-standing.js';
import type { OfferedState } from './report.js';
import type { SignedRole } from './signed-releases.js';

/** If `hosts` is set, `text` continues after their number or names: `2 hosts (edge-1, edge-2)` or `400 hosts`. */
type Draft = FleetFinding & { readonly hosts?: number };
type Rule = (facts: FleetFacts) => readonly Draft[];

/** With more hosts than this the sentence has only their number. */
export const maxNamedHosts = 3;
const maxNameLength = 60;

const rules: readonly Rule[] = [
  ...[
    expired,
    withdrawnInUse,
    offers('refused', 'REFUSED'),
    offers('rolled-back', 'ROLLED_BACK'),
    blocked,
    critical,
    cloned,
  ],
  ...[noHosts, silent, unconfirmed, offers('failed', 'FAILED'), offers('deferred', 'DEFERRED')],
  ...[behind, unread, roleEnds, waiting],
];

/** @returns the filters of those findings that have few enough hosts to name them, the worst finding first */
export function filtersToName(facts: FleetFacts): readonly string[] {
  return draftsOf(facts).flatMap(({ where, hosts = 0 }) =>
    where !== undefined && hosts > 0 && hosts <= maxNamedHosts ? [where] : [],
  );
}

/**
 * Builds the summary of a fleet from its counts. Pure; throws nothing.
 * @param names names of hosts for the filters of `filtersToName`. Without them, or if their number differs from the count, the
 *   text has only the number.
 * @returns the members of `facts` with `level`, `sentence` and `findings`. `findings` has all critical ones, then the warnings,
 *   empty without a problem. `level` is that of the first, else `ok`. `sentence` is the first finding, followed by how many more
 *   there are; without findings it states that all is well.
 */
export function summarize(
  facts: FleetFacts,
  names: ReadonlyMap<string, readonly string[]> = new Map(),
): FleetSummary {
  const findings = draftsOf(facts).map((draft): FleetFinding => {
    const { hosts, ...finding } = draft;
    return hosts === undefined ? finding : { ...finding, text: `${subject(draft, names)} ${finding.text}` };
  });
  const [worst, ...others] = findings;
  const more =
    others.length === 0 ? '' : `, and ${others.length} more ${others.length === 1 ? 'thing' : 'things'}`;
  const clause = worst === undefined ? '' : worst.text[0]?.toUpperCase() + worst.text.slice(1);
  const sentence = worst === undefined ? allWell(facts) : `${clause}${more}. ${standingText(facts)}`.trim();
  return { schema: 1, type: 'fleet.summary', ...facts, level: worst?.level ?? 'ok', sentence, findings };
}

/** The worst first. */
function draftsOf(facts: FleetFacts): Draft[] {
  const found = rules.flatMap((rule) => rule(facts));
  return (['critical', 'warning'] as const).flatMap((level) => found.filter((one) => one.level === level));
}

/** Names are read after the numbers. If they differ in number, the subject has no names, because these may be other hosts. */
function subject(
  { hosts = 0, where = '' }: Pick<Draft, 'hosts' | 'where'>,
  names: ReadonlyMap<string, readonly string[]>,
): string {
  const known = names.get(where) ?? [];
  if (known.length !== hosts) return hostsText(hosts);
  return `${hostsText(hosts)} (${known.map((name) => name.slice(0, maxNameLength)).join(', ')})`;
}

const hour = 3_600_000;
/** The same margins as in `writ health`: people must sign offline roles, a running server signs online roles. */
const marginMs: Readonly<Record<string, number>> = { timestamp: 24 * hour, snapshot: 72 * hour };
const offlineMarginMs = 14 * 24 * hour;

/** @returns whether the role expires so soon that it must be signed again */
export function isNearEnd(role: string, leftMs: number): boolean {
  return leftMs < (marginMs[role] ?? offlineMarginMs);
}

export interface KnownRole extends SignedRole {
  /** Role, with the URL of its repository if the server reads several repositories. */
  readonly name: string;
}

/** @returns the roles in the repositories that the server reads; if none was read, the roles that the hosts report */
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

function withdrawnInUse({ releases }: FleetFacts): Draft[] {
  return releases
    .filter(({ standing }) => standing === 'withdrawn')
    .map((one) => ({
      level: 'critical',
      code: 'WITHDRAWN_IN_USE',
      hosts: hostsOfRelease(one),
      text: `${runText(one)}, which was withdrawn`,
      where: whereOf(one),
    }));
}

/** A new release is not `BEHIND` for this time, because hosts poll every few minutes and a rollout delays some of them. */
const spreadMs = 30 * 60_000;

function behind({ releases, repositories = [], atMs }: FleetFacts): Draft[] {
  return releases.flatMap((one): Draft[] => {
    const signed = signedOf(repositories, one);
    const isNew = signed.some(({ seenAtMs }) => atMs - seenAtMs < spreadMs);
    const [first] = signed;
    if (one.standing !== 'behind' || first === undefined || isNew) return [];
    const serials = [...new Set(signed.map(({ serial }) => serial))].join(' or ');
    const text = `${runText(one)} where ${serials} should be in use`;
    return [{ level: 'warning', code: 'BEHIND', hosts: hostsOfRelease(one), text, where: whereOf(one) }];
  });
}

/** A single failed reading is normal and is no finding. */
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

function runText(one: ReleaseCount, hosts = hostsOfRelease(one)): string {
  return `${hosts === 1 ? 'runs' : 'run'} ${one.bundle} ${one.serial}`;
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

/** @returns a rule with one finding for each release, the one with the most hosts first; the groups of the release have its codes */
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
        const text = `${verbs[state]} ${first.bundle} ${first.serial} (${codes})`;
        const where = `state=${state},bundle=${first.bundle},channel=${first.channel},serial=${first.serial}`;
        return { level, code, hosts, text, where };
      });
  };
}

function blocked({ hosts }: FleetFacts): Draft[] {
  if (hosts.blocked === 0) return [];
  const text = `${hosts.blocked === 1 ? 'is' : 'are'} blocked after repeated failures`;
  return [{ level: 'critical', code: 'BLOCKED', hosts: hosts.blocked, text, where: 'state=blocked' }];
}

/** A host with critical health, as `writ health` reports it, makes the fleet critical. */
function critical({ hosts: { critical: hosts = 0 }, criticalCodes = [] }: FleetFacts): Draft[] {
  if (hosts === 0) return [];
  const codes = criticalCodes.length === 0 ? '' : ` (${criticalCodes.join(', ')})`;
  const text = `${hosts === 1 ? 'is' : 'are'} critical${codes}`;
  return [{ level: 'critical', code: 'HOST_CRITICAL', hosts, text, where: 'state=critical' }];
}

function cloned({ hosts }: FleetFacts): Draft[] {
  if (hosts.cloned === 0) return [];
  const text = `${hosts.cloned === 1 ? 'shares' : 'share'} a key with a clone`;
  return [{ level: 'critical', code: 'CLONED', hosts: hosts.cloned, text, where: 'state=cloned' }];
}

function noHosts({ hosts, releases }: FleetFacts): FleetFinding[] {
  // Hosts are counted before releases: a release in use shows a host that enrolled between the two counts.
  if (hosts.accepted > 0 || releases.length > 0) return [];
  return [{ level: 'warning', code: 'NO_HOSTS', text: 'no host is enrolled' }];
}

/**
 * Each host is compared with its own interval: a host with an interval of a day must not delay the detection of other silent hosts.
 */
function silent({ hosts }: FleetFacts): Draft[] {
  if (hosts.silent === 0) return [];
  const text = `${hosts.silent === 1 ? 'is' : 'are'} silent`;
  return [{ level: 'warning', code: 'SILENT', hosts: hosts.silent, text, where: 'state=silent' }];
}

function unconfirmed({ releases }: FleetFacts): Draft[] {
  return releases
    .filter((one) => one.unconfirmed > 0)
    .toSorted((a, b) => b.unconfirmed - a.unconfirmed)
    .map((one) => ({
      level: 'warning',
      code: 'UNCONFIRMED',
      hosts: one.unconfirmed,
      text: `${runText(one, one.unconfirmed)} unconfirmed`,
      where: `state=unconfirmed,${whereOf(one)}`,
    }));
}

function waiting({ hosts }: FleetFacts): Draft[] {
  if (hosts.waiting === 0) return [];
  const text = `${hosts.waiting === 1 ? 'waits' : 'wait'} for approval`;
  return [
    { level: 'warning', code: 'WAITING_FOR_APPROVAL', hosts: hosts.waiting, text, where: 'state=waiting' },
  ];
}
