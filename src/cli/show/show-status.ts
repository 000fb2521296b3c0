// `writ status` for people: a sentence, then bundles, workers, freshness, trust, and each problem with its hint. Pure.
import { type ErrorCode, errorCodes, isImplicitRefusal } from '../../core/error-codes.js';
import { describeCaller } from '../../core/names.js';
import type {
  Bounded,
  BundleStatus,
  StatusReport,
  WorkerStatus,
} from '../../core/protocol/control-protocol.js';
import { sizeText } from '../../core/size-text.js';
import { chooseServiceCommands, type ServiceCommands } from '../../core/status/agent-service.js';
import { findWorkerEnds } from '../../core/status/host-health.js';
import type { DownloadedBytes, HoldStatus } from '../../core/status/status.js';
import { currentWorkerCodes } from '../../core/status/worker-rules.js';
import { timeLeft } from '../../core/text/iso-time.js';
import { freshnessLines } from './show-freshness.js';
import { fleetLines } from './show-reporting.js';
import type { Block } from './show-result.js';
import { sandboxLines } from './show-sandbox.js';
import {
  counted,
  indented,
  lineOf,
  logLines,
  minuteTime,
  missedText,
  roughly,
  secondTime,
  table,
  truncatedLines,
} from './show-text.js';
import { bakeText, bakeWaitLines, workerLines } from './show-workers.js';

/** A problem beside an active policy that lasts until its fix. A pull exits with 4 for it. */
const isDegraded = (code: ErrorCode): boolean => currentWorkerCodes.has(code) || isImplicitRefusal(code);

const blockingCodes: ReadonlySet<ErrorCode> = new Set(['ACTIVATION_BLOCKED', 'STATE_VANISHED']);

/**
 * @returns one state of the host, the worst: stopped, blocked, untrusted, damaged, alarm (refused metadata), frozen, empty,
 *   degraded, stale or active
 */
export function statusLabel(report: StatusReport): string {
  if (report.agent === 'stop') return 'stopped';
  if (report.problems.some(({ code }) => blockingCodes.has(code))) return 'blocked';
  if (report.untrusted?.some((one) => one.active)) return 'untrusted';
  if (isDamaged(report)) return 'damaged';
  // Refused metadata is an attack or a fault, so the host must never be shown as active.
  if (report.freshness.state === 'refused') return 'alarm';
  if (report.freshness.state === 'frozen') return 'frozen';
  if (report.generation === undefined) return 'empty';
  // Workers that the last cycle did not reach may have been notified since.
  const hasNoProblem = report.problems.length === 0;
  const missed =
    (report.last?.outcome === 'degraded' && !hasNoProblem) || missedOf(report.workers).length > 0;
  if (missed || report.problems.some(({ code }) => isDegraded(code))) return 'degraded';
  const isReleaseStale = report.problems.some(({ code }) => code === 'RELEASE_STALE');
  return report.freshness.state === 'stale' || isReleaseStale ? 'stale' : 'active';
}

function isDamaged({ problems }: StatusReport): boolean {
  return problems.some(({ code }) => code === 'STATE_DAMAGED');
}

/**
 * @param service the commands that start and stop the agent of this host; left out: those of its unit. Throws nothing
 * @returns lines; the first has label, sentence and host. `next` or `undo` is present only without problems, for a useful command
 */
export function showStatus(
  report: Bounded<StatusReport>,
  service = chooseServiceCommands('installed'),
): Block {
  const { word, sentence } = headOf(report);
  return {
    lines: [
      `${word}  ${sentence}    ${report.host}`,
      ...bundleLines(report),
      ...bakeWaitLines(report),
      ...workerLines(report),
      ...freshnessLines(report),
      ...scrubLines(report),
      ...sandboxLines(report.sandbox),
      ...mirrorLines(report),
      ...fleetLines(report),
      ...logLines(report),
      ...(report.trust.length === 0 ? [] : [`  trust     ${trustText(report)}`]),
      ...untrustedLines(report),
      ...refusalLines(report),
      ...report.holds.map(
        (one) =>
          `  held      ${one.bundle} ${one.serial} by ${describeCaller(one.by)} at ${minuteTime(one.atMs)}${one.reason ? `: ${one.reason}` : ''}`,
      ),
      ...waitLines(report),
      ...bakeGapLines(report),
      ...pauseLines(report),
      ...heldLines(report),
      ...problemLines(report),
      ...warningLines(report),
      ...truncatedLines(report),
    ],
    ...(report.problems.length === 0 ? nextStep(report, service) : {}),
  };
}

/** @returns ISO 8601 time; label in capitals, (unconfirmed), (paused); sentence; codes of problems joined by spaces */
export function statusLine(report: StatusReport): readonly string[] {
  const { word, sentence } = headOf(report);
  const codes = [...new Set(report.problems.map((one) => one.code))];
  return [new Date(report.atMs).toISOString(), word, sentence, codes.join(' ')];
}

function headOf(report: StatusReport): { readonly word: string; readonly sentence: string } {
  const { generation, workers } = report;
  const label = statusLabel(report);
  const unconfirmed = label === 'active' && workers.length > 0 && !report.confirmed ? ' (unconfirmed)' : '';
  const active = generation === undefined ? 'no policy is active' : `generation ${generation} is active`;
  const damaged = isDamaged(report) ? ', and the policy on disk is damaged' : '';
  const agent = report.agent === 'run' || report.agent === 'stop' ? '' : ` (agent: ${report.agent})`;
  const downloading = lineOf(report.downloading, downloadText).join('');
  const stopped = report.agent === 'stop' ? 'the agent is not running; ' : '';
  const paused = report.pause === undefined ? '' : ' (paused)';
  return {
    word: `${label.toUpperCase()}${unconfirmed}${paused}`,
    sentence: `${stopped}${active}${damaged}${missedText(workers)}${downloading}${agent}`,
  };
}

function downloadText({ doneBytes, totalBytes }: DownloadedBytes): string {
  return `, downloading (${sizeText(doneBytes)} of ${sizeText(totalBytes)})`;
}

function missedOf(workers: readonly WorkerStatus[]): readonly WorkerStatus[] {
  return workers.filter((one) => one.state === 'unreachable' || one.state === 'refused');
}

function bundleLines(report: StatusReport): string[] {
  if (report.bundles.length === 0) return [];
  return table(
    ['bundle', 'channel', { right: 'serial' }, 'revision', 'active since', 'bake time', 'server has'],
    report.bundles.map((one) => [
      one.bundle,
      one.channel,
      one.serial === undefined ? '-' : String(one.serial),
      one.revision ?? '-',
      one.activatedAtMs === undefined ? '-' : minuteTime(one.activatedAtMs),
      bakeText(one.bake),
      serverText(one, report),
    ]),
  );
}

function serverText(bundle: BundleStatus, report: StatusReport): string {
  const { server } = bundle;
  if (server === undefined) return notListedText(report);
  if (server.serial === bundle.serial) return 'same';
  if (bundle.withdrawnBy !== undefined) return `${server.serial}, withdraws ${bundle.serial}`;
  const at = (one: { readonly bundle: string; readonly serial: number }): boolean =>
    one.bundle === bundle.bundle && one.serial === server.serial;
  if (report.refusals.some(at)) return `${server.serial}, refused`;
  if (report.holds.some(at)) return `${server.serial}, held`;
  if (isTooNew(bundle.bundle, report)) return `${server.serial}, deferred`;
  if (report.pause !== undefined || report.waiting?.some(at)) return `${server.serial}, waits`;
  return server.fixes === undefined ? String(server.serial) : `${server.serial}, fixes ${server.fixes}`;
}

/** Only verified targets prove that a bundle is not listed. */
function notListedText({ freshness, trust }: StatusReport): string {
  if (freshness.lastContactAtMs === undefined) return 'not asked yet';
  return trust.some(({ role }) => role === 'targets') ? 'no such bundle' : 'nothing verified yet';
}

/** The release requires a feature that the Writ of this host does not know. */
function isTooNew(bundle: string, { problems }: StatusReport): boolean {
  return problems.some(({ code, facts }) => code === 'REQUIRES_UNKNOWN' && facts['bundle'] === bundle);
}

/** The state of each mirror. A failing mirror is shown even when another one replaces it. */
function mirrorLines({ mirrors = [], atMs }: StatusReport): string[] {
  return mirrors.map(({ url, state, code, sinceMs }) => {
    const since = sinceMs === undefined ? '' : ` for ${roughly(atMs - sinceMs)}`;
    const states = { used: 'in use', idle: 'not asked', failed: `fails${since} [${code}]` };
    return `  mirror    ${url}  ${states[state]}`;
  });
}

function scrubLines({ scrub, atMs }: StatusReport): string[] {
  if (scrub === undefined) return [];
  const damaged = `${counted(scrub.found, 'thing')} damaged`;
  const outcomes = { intact: 'intact', damaged, repaired: `${damaged}, repaired` };
  return [`  on disk   ${outcomes[scrub.outcome]}, scanned ${roughly(atMs - scrub.atMs)} ago`];
}

function trustText(report: StatusReport): string {
  const roles = report.trust.map(({ role, version, expiresAtMs }) => {
    const left = expiresAtMs <= report.atMs ? 'EXPIRED' : timeLeft(expiresAtMs - report.atMs);
    return `${role}${role === 'root' ? ` v${version}` : ''} ${left}`;
  });
  return `${roles.join(', ')}${roles.at(-1)?.endsWith('EXPIRED') ? '' : ' left'}`;
}

function refusalLines({ refusals, olderRefusals = 0, atMs }: StatusReport): string[] {
  return [
    ...refusals.flatMap(({ bundle, serial, code, reason, retryAtMs }) => [
      `  refused   ${bundle} ${serial} [${code}], tried again ${retryTime(retryAtMs, atMs)}`,
      ...indented(reason, '            ', 3),
      ...lineOf(hintOf(code), (hint) => `            Next: ${hint}`),
    ]),
    ...(olderRefusals === 0 ? [] : [`  history   ${counted(olderRefusals, 'older refusal')}: writ refusals`]),
  ];
}

/** @returns undefined for a code of a later version */
function hintOf(code: string): string | undefined {
  return errorCodes[code as ErrorCode]?.hint;
}

function retryTime(retryAtMs: number, nowMs: number): string {
  return retryAtMs <= nowMs ? 'at the next cycle' : `from ${minuteTime(retryAtMs)}`;
}

/** Warnings of health without effect on a pull: a probe without a verdict, unconfirmed workers. */
function warningLines(report: StatusReport): string[] {
  const { groups = [], problems } = report;
  const known = new Set(problems.map(({ code }) => code));
  const found = groups.flatMap(({ findings }) => findings).filter(({ code }) => !known.has(code));
  return [...found, ...findWorkerEnds(report)].map(({ code, text }) => `  warning   ${text} [${code}]`);
}

function untrustedLines({ untrusted = [] }: StatusReport): string[] {
  return untrusted.map(
    ({ bundle, serial, generation, active }) =>
      `  UNTRUSTED ${bundle} ${serial} in generation ${generation}${active ? ', which is active' : ': no rollback activates it'}`,
  );
}

function waitLines({ waiting = [] }: StatusReport): string[] {
  return waiting.map(({ bundle, serial, groups, untilMs }) => {
    return `  waits     ${bundle} ${serial} until ${secondTime(untilMs)} UTC: ${groups.join(', ')} is not notified before that`;
  });
}

function pauseLines({ pause }: StatusReport): string[] {
  if (pause === undefined) return [];
  const { by, atMs, untilMs, reason } = pause;
  const end = untilMs === undefined ? 'until writ resume' : `until ${minuteTime(untilMs)}`;
  const why = reason === '' ? '' : `: ${reason}`;
  return [`  paused    by ${describeCaller(by)} since ${minuteTime(atMs)}, ${end}${why}`];
}

const useTexts = {
  mount: 'mounted at',
  cwd: 'works in',
  root: 'has as its root',
  open: 'has open',
} as const;

/** Each former generation that a rule or a process retains, with its user. */
function heldLines({ held = [] }: StatusReport): string[] {
  return held.map(({ generation, bundle, what, path = '', pid, command = '?', sinceMs }) => {
    const part = generation === undefined ? `a tree of ${bundle}` : `generation ${generation}`;
    const userText = pid === undefined ? '' : `${command} (pid ${pid}) `;
    return `  kept      ${part}, not current since ${minuteTime(sinceMs)}: ${userText}${useTexts[what]} ${path}`;
  });
}

/** A release that waits after failures of others is no fault of the host: `writ health` is OK with it. */
const isWait = ({ code }: { readonly code: string }): boolean => code === 'BAKE_GAP';

function bakeGapLines({ problems }: StatusReport): string[] {
  return problems.filter(isWait).flatMap(({ code, message, hint }) => {
    const [first = ''] = indented(message, '', 1);
    return [`  waits     ${first} [${code}]`, `            Next: ${hint}`];
  });
}

function problemLines(report: StatusReport): string[] {
  const problems = report.problems.filter((one) => !isWait(one));
  if (problems.length === 0) return [];
  return [
    counted(problems.length, 'problem'),
    ...problems.flatMap((one) => {
      const [first = '', ...rest] = indented(one.message, '', 4);
      return [`  ${one.code}  ${first}`, ...rest.map((line) => `    ${line}`), `    Next: ${one.hint}`];
    }),
  ];
}

function nextStep(report: StatusReport, { start }: ServiceCommands): Pick<Block, 'next' | 'undo'> {
  if (report.agent === 'stop') return { next: start };
  if (report.generation === undefined) return report.downloading === undefined ? { next: 'writ pull' } : {};
  return report.pause !== undefined || report.holds.some((one) => isOffered(one, report))
    ? { undo: 'writ resume' }
    : {};
}

/** Whether the end of a hold would activate its release: it is still offered, and not refused. */
function isOffered({ bundle, serial }: HoldStatus, { bundles, refusals }: StatusReport): boolean {
  const offered = bundles.find((one) => one.bundle === bundle)?.server?.serial ?? serial;
  return offered === serial && !refusals.some((one) => one.bundle === bundle && one.serial === serial);
}
