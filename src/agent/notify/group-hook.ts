// Commands of worker groups behind the swap, loaders and probes: they find the live policy. Runs one and says what its
// end means; when they run is tell-steps'.
import { join } from 'node:path';
import type { HookConfig, WorkerGroupConfig } from '../../core/config/config.js';
import { type ErrorCode, WritError } from '../../core/errors.js';
import type { HookReport } from '../hooks/hook.js';
import { runHook } from '../hooks/run-hook.js';
import type { TellContext } from './notify-context.js';

/** Runs a loader or a probe on the generation that workers are moved to. */
export function groupHook(
  group: WorkerGroupConfig,
  hook: HookConfig,
  context: TellContext,
): Promise<HookReport> {
  const onlyBundle = group.uses.length === 1 ? group.uses[0] : undefined;
  const { path } = context.target;
  const bundle = onlyBundle === undefined ? {} : { bundle: join(path, onlyBundle) };
  return runHook({
    hook,
    places: { generation: path, candidate: path, current: path, ...bundle },
    scratchRoot: context.staging,
    durable: context.durable,
    confine: { ...context.confine, view: { kind: 'live' } },
    signal: context.signal,
  });
}

/** @throws WritError with one of the codes, where it is no yes */
export function requireVerdict(
  group: string,
  report: HookReport,
  codes: { refused: ErrorCode; broken: ErrorCode; deferred?: ErrorCode; asked?: string },
): void {
  const { kind, reason } = report.verdict;
  if (kind === 'ok' || kind === 'warned') return;
  const notNow = kind === 'deferred' ? codes.deferred : undefined;
  const code = kind === 'refused' ? codes.refused : (notNow ?? report.code ?? codes.broken);
  const said = report.text === '' ? '' : `: ${report.text.trim()}`;
  throw new WritError(code, `${codes.asked ?? group}: ${reason}${said}`, {
    facts: { groups: [group], reason, output: report.text },
    ...(report.hint === undefined ? {} : { hint: report.hint }),
  });
}
