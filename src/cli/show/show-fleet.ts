// The text output of the fleet commands: a summary, then tables. A hostile host may choose names, labels and lines, so
// all of them are escaped by the tables and lines. Pure.
import type {
  BakeCounts,
  FleetSummary,
  HostBundle,
  HostDetail,
  HostLine,
  LogPage,
  OpaBundle,
  RepositoryStatus,
} from '../../core/fleet/answers.js';
import { deliveryState, deliveryStates, provenStates } from '../../core/fleet/delivery-state.js';
import type { ReleaseInterval } from '../../core/fleet/history-answers.js';
import type { ActiveState } from '../../core/fleet/report.js';
import { knownError } from '../../core/known-error.js';
import { timeLeft } from '../../core/text/iso-time.js';
import { counted, minuteTime, roughly, secondTime, table } from './show-text.js';

const levelTexts = { ok: 'OK', warning: 'WARNING', critical: 'CRITICAL' } as const;

/** @returns the numbers of hosts by the bake state of the release, as `3 baking, 40 settled` */
function bakesText(bakes: BakeCounts | undefined): string {
  if (bakes === undefined) return '';
  const { baking = 0, settled = 0, unobserved = 0, none = 0, failed = 0 } = bakes;
  const counts = { failed, baking, settled, 'settled unobserved': unobserved, 'without one': none };
  return Object.entries(counts)
    .flatMap(([state, hosts]) => (hosts === 0 ? [] : [`${hosts} ${state}`]))
    .join(', ');
}

/** @returns the level and its sentence, findings, hosts, then a table for each part that has rows */
export function showSummary(summary: FleetSummary): string[] {
  const { hosts, releases, offers, roots, keys, versions, atMs } = summary;
  const hasLines = offers.some(({ lines = [] }) => lines.length > 0);
  const titled = (title: string, lines: readonly string[]): string[] =>
    lines.length > 1 ? [title, ...lines] : [];
  return [
    `${levelTexts[summary.level]} ${summary.sentence}`,
    ...firstRows(summary.findings, ({ level }) => (level === 'critical' ? 1 : 0)).map(
      ({ level, text }) => `  ${level}: ${text}`,
    ),
    ...moreLines(summary.findings.length),
    `${hostsLine(hosts)}${hosts.unjudged > 0 ? `; too early to say whether ${unjudgedText(hosts)}` : ''}`,
    ...titled('releases in use', releasesTable(releases)),
    ...moreLines(releases.length),
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
          ...(hasLines ? ['first line'] : []),
        ],
        firstRows(offers, ({ hosts: count }) => count).map((one) => [
          ...[one.bundle, one.channel, String(one.serial), one.state, one.code, String(one.hosts)],
          one.firstAtMs === undefined ? '' : minuteTime(one.firstAtMs),
          ...(hasLines ? [one.lines?.[0] ?? ''] : []),
        ]),
      ),
    ),
    ...moreLines(offers.length),
    ...(offers.length === 0 || hasLines
      ? []
      : ['  No first lines: a token of the role detail shows what hosts send of them (fleet.detail).']),
    ...(summary.repositories ?? []).flatMap((one) => repositoryLines(one, atMs)),
    ...titled(
      'trust',
      table(
        ['role', { right: 'version' }, 'left'],
        keys.map((one) => [one.role, String(one.version), timeLeft(one.expiresAtMs - atMs)]),
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

/** Rows of one table. A host can report a thousand bundles, and their rows must not hide those of other hosts. */
const maxRows = 100;

/** @returns the rows with the most hosts, in the order given */
function firstRows<Row>(rows: readonly Row[], hostsIn: (row: Row) => number): readonly Row[] {
  if (rows.length <= maxRows) return rows;
  const most = new Set(rows.toSorted((a, b) => hostsIn(b) - hostsIn(a)).slice(0, maxRows));
  return rows.filter((row) => most.has(row));
}

function moreLines(rows: number): string[] {
  return rows > maxRows ? [`  (${rows - maxRows} more: --json has each)`] : [];
}

function hostsOf(release: FleetSummary['releases'][number]): number {
  return deliveryStates.reduce((sum, state) => sum + (release[state] ?? 0), 0);
}

function releasesTable(releases: FleetSummary['releases']): string[] {
  const states = deliveryStates.filter(
    (state) => provenStates.includes(state) || releases.some((one) => (one[state] ?? 0) > 0),
  );
  return table(
    ['bundle', 'channel', ...['serial', ...states].map((right) => ({ right })), 'bake time', '', ''],
    firstRows(releases, hostsOf).map((one) => [
      ...[one.bundle, one.channel, String(one.serial), ...states.map((state) => String(one[state] ?? 0))],
      ...[bakesText(one.bakes), one.place === 'tail' ? 'tail' : '', one.standing ?? ''],
    ]),
  );
}

/** Adds the digest when two roots have one version: they belong to two repositories, or a thief made one. */
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
    .map(({ role, expiresAtMs }) => `${role} ${timeLeft(expiresAtMs - atMs)}`);
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
  const others = (['waiting', 'stopped', 'silent', 'critical', 'blocked', 'cloned', 'opa'] as const).filter(
    (name) => (hosts[name] ?? 0) > 0,
  );
  return [counted(hosts.accepted, 'host'), ...others.map((name) => `${hosts[name]} ${name}`)].join(', ');
}

/** @returns a table of this page, with a note where a further page exists; one line `EMPTY` without hosts */
export function showHosts(hosts: readonly HostLine[], hasMore: boolean, nowMs: number): string[] {
  if (hosts.length === 0) return ['EMPTY     no host matches'];
  const rows = hosts.map((one) => [
    one.host,
    // The keys of all OPAs of a token begin with the token.
    one.kind === 'opa' ? one.key : one.key.slice(0, 12),
    one.state === 'accepted' ? one.presence : one.state,
    one.health,
    one.bundles.map((bundle) => bundleText(bundle, one, nowMs)).join(', '),
    seenText(one, nowMs),
    one.kind === 'opa' ? 'unsigned' : one.cloned ? 'CLONED' : '',
  ]);
  return [
    `FOUND     ${counted(hosts.length, 'host')}${hasMore ? ', and more' : ''}`,
    ...table(['host', 'key', 'state', 'health', 'bundles', 'heard', ''], rows),
  ];
}

function seenText({ lastSeenMs, presence }: HostLine, nowMs: number): string {
  return presence === 'never' ? '-' : `${roughly(nowMs - lastSeenMs)} ago`;
}

function bundleText(
  { bundle, active, offered, signed }: HostBundle,
  host: Pick<HostLine, 'presence' | 'lastSeenMs' | 'cloned'>,
  nowMs: number,
  ...channel: readonly string[]
): string {
  const should = signed === undefined || signed.standing === 'current' ? '' : `, ${signedText(signed)}`;
  const bake = active?.bake === 'baking' || active?.bake === 'failed' ? `, ${active.bake}` : '';
  const now =
    active === undefined
      ? 'nothing'
      : `${active.serial} ${activeText(active.state, host, nowMs)}${bake}${should}`;
  return `${[bundle, ...channel].join(' ')} ${now}${offered === undefined ? '' : ` (${offered.serial} ${offered.state} ${offered.code})`}`;
}

/** @returns the state; with the time of its report when it is not current, and with a note when two machines use one key */
function activeText(
  state: ActiveState,
  { presence, lastSeenMs, cloned }: Pick<HostLine, 'presence' | 'lastSeenMs' | 'cloned'>,
  nowMs: number,
): string {
  const present = deliveryState({ state, presence, cloned });
  if (present === state) return state;
  if (present === 'cloned') return `${state} on one of two machines`;
  return `${state}, last report ${roughly(nowMs - lastSeenMs)} ago`;
}

function signedText({ standing, serial }: NonNullable<HostBundle['signed']>): string {
  if (standing === 'unknown') return 'unknown whether it should';
  return `${standing}: ${serial} should be in use`;
}

const maxOutcomes = 10;

/** @returns one host with its findings, labels, bundles and last outcomes; parts without content have no line */
export function showHost(host: HostDetail, nowMs: number): string[] {
  const { outcomes, namesakes } = host;
  const heading = host.state === 'retired' ? host.state : host.presence;
  return [
    `${heading.toUpperCase()} ${host.host}  ${host.key}`,
    `  ${host.kind === 'opa' ? 'unsigned' : host.state}, health ${host.health || 'unknown'}, ${host.kind === 'opa' ? 'OPA' : 'Writ'} ${host.version || 'unknown'}, heard ${seenText(host, nowMs)}`,
    ...(host.report?.findings ?? []).flatMap(findingLines),
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
      `  ${bundleText(one, host, nowMs, one.channel)}`,
      ...(one.offered?.line === undefined ? [] : [`    ${one.offered.line}`]),
    ]),
    ...(host.opaBundles ?? []).map(opaBundleText),
    ...outcomes
      .slice(0, maxOutcomes)
      .map((one) => `  ${minuteTime(one.atMs)}  ${one.trigger}  ${outcomeText(one)}`),
  ];
}

/** @returns as `  authz r42  bundle_error: unexpected token` */
function opaBundleText({ name, revision = 'nothing', code, message }: OpaBundle): string {
  const error = code === undefined ? '' : `  ${[code, message].filter(isText).join(': ')}`;
  return `  ${name} ${revision}${error}`;
}

function isText(text: string | undefined): text is string {
  return text !== undefined;
}

function findingLines(code: string): string[] {
  const known = knownError(code);
  if (known === undefined) return [`  ${code}`];
  return [`  ${code}: ${known.meaning}`, `    Next: ${known.hint}`];
}

/** @returns as `rejected dns-edge 42  CHECK_FAILED` */
function outcomeText({ outcome, bundles = [], code = '' }: HostDetail['outcomes'][number]): string {
  const releases = bundles.map(({ bundle, serial }) => `${bundle} ${serial}`).join(', ');
  return [`${outcome} ${releases}`.trimEnd(), code].join('  ').trimEnd();
}

/** @returns a table of the audit with shortened key ids; one line `EMPTY` without entries */
export function showLog({ entries }: LogPage): string[] {
  if (entries.length === 0) return ['EMPTY     no changes'];
  const short = (text: string): string => text.replaceAll(/\b([0-9a-f]{12})[0-9a-f]{52}\b/g, '$1');
  const rows = entries.map((one) => [
    ...[`${secondTime(one.atMs)} UTC`, one.who, one.what, short(one.subject), short(one.detail)],
  ]);
  return [
    `FOUND     ${entries.length} changes`,
    ...table(['when', 'who', 'what', 'subject', 'detail'], rows),
  ];
}

/** @param subject what differs from row to row. @returns a table; one line `EMPTY` without intervals */
export function showIntervals(
  intervals: readonly ReleaseInterval[],
  hasMore: boolean,
  subject: 'host' | 'release',
): string[] {
  if (intervals.length === 0) return ['EMPTY     nothing is known'];
  const rows = intervals.map((one) => [
    ...(subject === 'host'
      ? [one.host, one.key.slice(0, 12)]
      : [one.bundle, one.channel, String(one.serial)]),
    one.state ?? one.kind,
    one.code ?? '',
    minuteTime(one.sinceMs),
    one.untilMs === undefined ? 'now' : minuteTime(one.untilMs),
    one.merged === undefined || one.merged === 1 ? '' : `${one.merged} times that day`,
  ]);
  const names = subject === 'host' ? ['host', 'key'] : ['bundle', 'channel', { right: 'serial' }];
  return [
    `FOUND     ${counted(intervals.length, 'interval')}${hasMore ? ', and more' : ''}`,
    ...table([...names, 'state', 'code', 'from', 'until', ''], rows),
  ];
}
