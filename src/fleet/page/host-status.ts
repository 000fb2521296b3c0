// The state of a host as a label, a colour and a sentence, as in `writ status`. Uses only what a report contains. Pure.
import type { HostBundle, HostDetail, HostLine } from '../../core/fleet/answers.js';
import { deliveryState } from '../../core/fleet/delivery-state.js';
import { type FleetReport, isBlocked } from '../../core/fleet/report.js';
import type { Tone } from './parts.js';
import { ageText, counted } from './words.js';

const tones: Readonly<Record<string, Tone>> = {
  ok: 'ok',
  confirmed: 'ok',
  notified: 'quiet',
  unconfirmed: 'warning',
  warning: 'warning',
  critical: 'critical',
  refused: 'critical',
  'rolled-back': 'critical',
  failed: 'warning',
  deferred: 'quiet',
  unchanged: 'quiet',
  activated: 'ok',
  degraded: 'warning',
  rejected: 'critical',
  blocked: 'critical',
};

/** @returns `quiet` for an unknown state of a later version */
export function stateTone(state: string): Tone {
  return Object.hasOwn(tones, state) ? (tones[state] ?? 'quiet') : 'quiet';
}

type Active = Pick<NonNullable<HostBundle['active']>, 'state'>;
type ReportAge = Pick<HostLine, 'presence' | 'lastSeenMs' | 'cloned'>;

/** @returns `confirmed`; for a silent host `confirmed, last report 5 min ago`; for a clone `confirmed on one of two machines` */
export function activeText(
  { state }: Active,
  { presence, lastSeenMs, cloned }: ReportAge,
  nowMs: number,
): string {
  const present = deliveryState({ state, presence, cloned });
  if (present === state) return state;
  if (present === 'cloned') return `${state} on one of two machines`;
  return `${state}, last report ${ageText(nowMs - lastSeenMs)} ago`;
}

/** @returns the colour of an active release. A silent, stopped or cloned host gets the colour of that state. */
export function activeTone({ state }: Active, { presence, cloned }: Omit<ReportAge, 'lastSeenMs'>): Tone {
  return stateTone(deliveryState({ state, presence, cloned }));
}

/** @returns the host liveness, or the state of a host that is not accepted */
export function livenessText({ state, presence }: Pick<HostLine, 'state' | 'presence'>): string {
  return state === 'accepted' ? presence : state;
}

/** @returns the colour of the liveness of an accepted host; of the state of any other host */
export function livenessTone(host: Pick<HostLine, 'state' | 'presence'>): Tone {
  if (host.state !== 'accepted') return host.state === 'waiting' ? 'warning' : 'quiet';
  return ({ heard: 'ok', silent: 'critical', stopped: 'quiet', never: 'warning' } as const)[host.presence];
}

export interface HostHeadline {
  readonly label: string;
  readonly tone: Tone;
  readonly sentence: string;
}

/** @returns the first line of `writ status`, from the last report; the worst condition decides */
export function hostHeadline(host: HostDetail): HostHeadline {
  const { report } = host;
  if (host.state !== 'accepted') return headlineOfState(host.state);
  if (host.kind === 'opa') return opaHeadline(host);
  if (report === undefined)
    return { label: 'NEVER REPORTED', tone: 'warning', sentence: 'it has not reported yet' };
  const [label, tone] = headlineLabel(host, report);
  const active =
    report.generation === undefined ? 'no policy is active' : `generation ${report.generation} is active`;
  const missing = report.groups.reduce(
    (sum, { workers, confirmed }) => sum + Math.max(0, workers - confirmed),
    0,
  );
  const unconfirmed = missing === 0 ? '' : `, ${counted(missing, 'worker')} not confirmed`;
  const stopped = report.agent === 'stop' ? 'the agent is not running; ' : '';
  return { label, tone, sentence: `${stopped}${active}${unconfirmed}` };
}

function headlineOfState(state: 'waiting' | 'retired'): HostHeadline {
  return state === 'waiting'
    ? { label: 'WAITING', tone: 'warning', sentence: 'a person has to approve it before it counts' }
    : { label: 'RETIRED', tone: 'quiet', sentence: 'its key is refused, and it is in no count' };
}

/** The error messages of an OPA are in the table of its bundles. */
function opaHeadline({ presence, opaBundles = [] }: HostDetail): HostHeadline {
  const failed = opaBundles.filter(({ code }) => code !== undefined).length;
  const sentence = `${counted(opaBundles.length, 'bundle')} reported by OPA, ${failed} with an error`;
  if (presence === 'silent') return { label: 'SILENT', tone: 'critical', sentence };
  return failed > 0
    ? { label: 'DEGRADED', tone: 'warning', sentence }
    : { label: 'REPORTED', tone: 'ok', sentence };
}

function headlineLabel({ presence }: HostDetail, report: FleetReport): readonly [string, Tone] {
  if (report.agent === 'stop') return ['STOPPED', 'quiet'];
  if (presence === 'silent') return ['SILENT', 'critical'];
  if (isBlocked(report)) return ['BLOCKED', 'critical'];
  if (report.freshness === 'refused') return ['ALARM', 'critical'];
  if (report.freshness === 'frozen') return ['FROZEN', 'critical'];
  if (report.generation === undefined) return ['EMPTY', 'warning'];
  if (report.health !== 'ok') return ['DEGRADED', report.health];
  return report.freshness === 'stale' ? ['STALE', 'warning'] : ['ACTIVE', 'ok'];
}
