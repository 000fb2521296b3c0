// `writ health` in one line: the level, the problems with the worst first, and the host. Pure.
import type { HostHealth } from '../../core/status/host-health.js';
import type { StatusReport } from '../../core/status/status.js';
import { minuteTime, roughly } from './show-text.js';

const maxShown = 5;

/**
 * @returns the level, at most 5 findings with the count of further ones, and the host; without findings what is active
 */
export function healthLine(report: StatusReport, { level, findings }: HostHealth): string {
  const shown = findings.slice(0, maxShown).map(({ text, code }) => `${text} [${code}]`);
  const more = findings.length > maxShown ? [`${findings.length - maxShown} more`] : [];
  const text = findings.length === 0 ? wellText(report) : [...shown, ...more].join('; ');
  return `${level.toUpperCase()}  ${text}    ${report.host}`;
}

function wellText({ generation, freshness, confirmed, workers, atMs, pause }: StatusReport): string {
  const { ageMs } = freshness;
  const proofs = workers.flatMap(({ provenAtMs }) => provenAtMs ?? []);
  const unobserved = workers.some(({ observed }) => observed === false) ? ', not observed since' : '';
  const proved =
    confirmed && proofs.length > 0 ? `, proved ${roughly(atMs - Math.min(...proofs))} ago${unobserved}` : '';
  const proven = ageMs === undefined ? '' : `, proven current ${roughly(ageMs)} ago`;
  const unconfirmed = confirmed ? '' : workers.length === 0 ? ', nothing to confirm' : ' (unconfirmed)';
  const paused = pause?.untilMs === undefined ? '' : `, paused until ${minuteTime(pause.untilMs)}`;
  return `generation ${generation} is active${unconfirmed}${proved}${proven}${paused}`;
}
