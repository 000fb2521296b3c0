// What fleet commands say to people: the sentence first, then tables. Names, labels and lines are of hosts, who may be hostile:
// all of it goes through the tables and lines that escape. Pure.
import type {
  BakeCounts,
  FleetSummary,
  HostBundle,
  HostDetail,
  HostLine,
  LogPage,
  RepositoryStatus,
  TokenLine,
} from '../../core/fleet/answers.js';
import { counted, minuteTime, roughly, table } from './show-text.js';

const words = { ok: 'OK', warning: 'WARNING', critical: 'CRITICAL' } as const;

/** @returns hosts by where the release stands in its bake time, as `3 baking, 40 settled` */
function bakesText(bakes: BakeCounts | undefined): string {
  if (bakes === undefined) return '';
  const { baking = 0, settled = 0, unobserved = 0, none = 0, failed = 0 } = bakes;
  const counts = { failed, baking, settled, 'settled unobserved': unobserved, 'without one': none };
  return Object.entries(counts)
    .flatMap(([word, hosts]) => (hosts === 0 ? [] : [`${hosts} ${word}`]))
    .join(', ');
}

export function showSummary(summary: FleetSummary): string[] {
  const { hosts, releases, offers, roots, keys, versions, atMs } = summary;
  const titled = (title: string, lines: readonly string[]): string[] =>
    lines.length > 1 ? [title, ...lines] : [];
  return [
    `${words[summary.level]} ${summary.sentence}`,
    ...summary.findings.map(({ level, text }) => `  ${level}: ${text}`),
    `${hostsLine(hosts)}${hosts.unjudged > 0 ? `; too early to say whether ${unjudgedText(hosts)}` : ''}`,
    ...titled('releases in use', releasesTable(releases)),
    ...titled(
      'offered but not active',
      table(
        [
          'bundle',
          'channel',
          { right: 'serial' },
          'state',
          'code',
          { right: 'hosts' },
          'since',
          'first line',
        ],
        offers.map((one) => [
          ...[one.bundle, one.channel, String(one.serial), one.state, one.code, String(one.hosts)],
          ...[one.firstAtMs === undefined ? '' : minuteTime(one.firstAtMs), one.lines?.[0] ?? ''],
        ]),
      ),
    ),
    ...(summary.repositories ?? []).flatMap((one) => repositoryLines(one, atMs)),
    ...titled(
      'trust',
      table(
        ['role', { right: 'version' }, 'left'],
        keys.map((one) => [
          one.role,
          String(one.version),
          one.expiresAtMs <= atMs ? 'expired' : roughly(one.expiresAtMs - atMs),
        ]),
      ),
    ),
    ...(roots.length > 1
      ? [`roots on hosts: ${roots.map((one) => `${rootName(one, roots)} ${one.hosts}`).join(', ')}`]
      : []),
    ...(versions.length > 1
      ? [`versions: ${versions.map((one) => `${one.version} ${one.hosts}`).join(', ')}`]
      : []),
  ];
}

function releasesTable(releases: FleetSummary['releases']): string[] {
  const right = (...names: readonly string[]) => names.map((name) => ({ right: name }));
  return table(
    ['bundle', 'channel', ...right('serial', 'confirmed', 'notified', 'unconfirmed'), 'bake time', '', ''],
    releases.map((one) => [
      ...[one.bundle, one.channel, String(one.serial), String(one.confirmed), String(one.notified)],
      ...[String(one.unconfirmed), bakesText(one.bakes), one.place === 'tail' ? 'tail' : ''],
      one.standing ?? '',
    ]),
  );
}

/** Two roots of one version are of two repositories, or one is a thief's. */
function rootName({ version, digest }: FleetSummary['roots'][number], roots: FleetSummary['roots']): string {
  const same = roots.filter((one) => one.version === version);
  return same.length === 1 ? `v${version}` : `v${version} (${digest.slice(0, 12)})`;
}

function repositoryLines(
  { url, checkedAtMs, failing, roles, releases }: RepositoryStatus,
  atMs: number,
): string[] {
  const read = checkedAtMs === undefined ? 'never read' : `read ${roughly(atMs - checkedAtMs)} ago`;
  const failed =
    failing === undefined ? '' : `; unreadable [${failing.code}] for ${roughly(atMs - failing.sinceMs)}`;
  const should = releases.map((one) => [one.bundle, one.channel, String(one.serial), one.revision]);
  const ends = roles
    .toSorted((a, b) => a.expiresAtMs - b.expiresAtMs)
    .map(
      ({ role, expiresAtMs }) => `${role} ${expiresAtMs <= atMs ? 'expired' : roughly(expiresAtMs - atMs)}`,
    );
  return [
    `repository ${url}: ${read}${failed}`,
    ...(should.length === 0
      ? []
      : ['should be in use', ...table(['bundle', 'channel', { right: 'serial' }, 'revision'], should)]),
    ...(ends.length === 0 ? [] : [`  left: ${ends.join(', ')}`]),
  ];
}

function unjudgedText({ unjudged }: FleetSummary['hosts']): string {
  return unjudged === 1 ? '1 host is silent' : `${unjudged} hosts are silent`;
}

function hostsLine(hosts: FleetSummary['hosts']): string {
  const others = (['waiting', 'stopped', 'silent', 'blocked', 'cloned', 'opa'] as const).filter(
    (name) => hosts[name] > 0,
  );
  return [counted(hosts.accepted, 'host'), ...others.map((name) => `${hosts[name]} ${name}`)].join(', ');
}

export function showHosts(hosts: readonly HostLine[], more: boolean, nowMs: number): string[] {
  if (hosts.length === 0) return ['EMPTY     no host matches'];
  const rows = hosts.map((one) => [
    one.host,
    one.key.slice(0, 12),
    one.state === 'accepted' ? one.presence : one.state,
    one.health,
    one.bundles.map(bundleText).join(', '),
    seenText(one, nowMs),
    one.kind === 'opa' ? 'unsigned' : one.cloned ? 'CLONED' : '',
  ]);
  return [
    `FOUND     ${counted(hosts.length, 'host')}${more ? ', and more' : ''}`,
    ...table(['host', 'key', 'state', 'health', 'bundles', 'heard', ''], rows),
  ];
}

function seenText({ lastSeenMs, presence }: HostLine, nowMs: number): string {
  return presence === 'never' ? '-' : `${roughly(nowMs - lastSeenMs)} ago`;
}

function bundleText({ bundle, active, offered, signed }: HostBundle): string {
  const should = signed === undefined || signed.standing === 'current' ? '' : `, ${signedText(signed)}`;
  const bake = active?.bake === 'baking' || active?.bake === 'failed' ? `, ${active.bake}` : '';
  const now = active === undefined ? 'nothing' : `${active.serial} ${active.state}${bake}${should}`;
  return `${bundle} ${now}${offered === undefined ? '' : ` (${offered.serial} ${offered.state} ${offered.code})`}`;
}

function signedText({ standing, serial }: NonNullable<HostBundle['signed']>): string {
  if (standing === 'unknown') return 'unknown whether it should';
  return `${standing}: ${serial} should be in use`;
}

const maxOutcomes = 10;

export function showHost(host: HostDetail, nowMs: number): string[] {
  const { outcomes, namesakes } = host;
  return [
    `${host.presence.toUpperCase()} ${host.host}  ${host.key}`,
    `  ${host.kind === 'opa' ? 'OPA, unsigned' : host.state}, health ${host.health || 'unknown'}, Writ ${host.version || 'unknown'}, heard ${seenText(host, nowMs)}`,
    ...(host.cloned ? ['  CLONED: two machines report with this key; enrol one of them again'] : []),
    ...(namesakes.length === 0
      ? []
      : [
          `  ${counted(namesakes.length, 'other host')} with this name: ${namesakes.map((key) => key.slice(0, 12)).join(', ')}`,
        ]),
    ...(Math.abs(host.skewMs) < 60_000
      ? []
      : [`  its clock is ${roughly(Math.abs(host.skewMs))} ${host.skewMs > 0 ? 'ahead' : 'behind'}`]),
    ...Object.entries(host.labels).map(([name, value]) => `  ${name}=${value}`),
    ...host.bundles.flatMap((one) => [
      `  ${one.channel}  ${bundleText(one)}`,
      ...(one.offered?.line === undefined ? [] : [`    ${one.offered.line}`]),
    ]),
    ...outcomes
      .slice(0, maxOutcomes)
      .map((one) => `  ${minuteTime(one.atMs)}  ${one.trigger}  ${outcomeText(one)}`),
  ];
}

/** @returns as `rejected dns-edge 42  CHECK_FAILED` */
function outcomeText({ outcome, bundles = [], code = '' }: HostDetail['outcomes'][number]): string {
  const releases = bundles.map(({ bundle, serial }) => `${bundle} ${serial}`).join(', ');
  return [`${outcome} ${releases}`.trimEnd(), code].join('  ').trimEnd();
}

export function showLog({ entries }: LogPage): string[] {
  if (entries.length === 0) return ['EMPTY     no changes'];
  const rows = entries.map((one) => [minuteTime(one.atMs), one.who, one.what, one.subject, one.detail]);
  return [
    `FOUND     ${entries.length} changes`,
    ...table(['when', 'who', 'what', 'subject', 'detail'], rows),
  ];
}

export function showTokens(tokens: readonly TokenLine[]): string[] {
  if (tokens.length === 0) return ['EMPTY     there is no token'];
  const rows = tokens.map((one) => [
    ...[one.id, one.kind, one.role ?? '', one.state, one.usesLeft === undefined ? '' : String(one.usesLeft)],
    ...[
      one.expiresAtMs === undefined ? 'never' : minuteTime(one.expiresAtMs),
      one.hosts ?? '',
      one.note ?? '',
    ],
  ]);
  const columns = ['id', 'for', 'role', 'state', { right: 'uses left' }, 'ends', 'hosts', 'note'];
  return [`FOUND     ${counted(tokens.length, 'token')}`, ...table(columns, rows)];
}
