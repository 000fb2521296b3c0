// `writ refusals` for people: the refusals, the next retry of each, and the effect of `forget`.
// Pure: an answer in, lines out.
import type { Bounded, RefusalsResult } from '../../core/protocol/control-protocol.js';
import type { RememberedRefusal } from '../../core/status/status.js';
import type { Block } from './show-result.js';
import { counted, indented, minuteTime, table, truncatedLines } from './show-text.js';

/**
 * @returns a line FOUND with counts, then a table, the newest first, with the first line of each reason; one line EMPTY without
 *   refusals
 */
export function showRefusals(result: Bounded<RefusalsResult>, nowMs: number): Block {
  const refusals = result.refusals.toReversed();
  if (refusals.length === 0) return { lines: ['EMPTY     nothing is remembered as refused'] };
  const rows = refusals.map((one) => [
    minuteTime(one.atMs),
    one.bundle,
    one.channel,
    String(one.serial),
    one.code,
    String(one.tries),
    againText(one, nowMs),
    indented(one.reason, '', 1)[0]?.slice(0, maxReason) ?? '',
  ]);
  const standing = refusals.filter(({ state }) => state === 'standing').length;
  const columns = [
    ...['refused', 'bundle', 'channel', { right: 'serial' }, 'code', { right: 'times' }],
    ...['tried again', 'reason'],
  ];
  return {
    lines: [
      `FOUND     ${counted(refusals.length, 'refusal')}, ${standing} of releases that the server offers now`,
      ...table(columns, rows),
      ...truncatedLines(result),
    ],
  };
}

const maxReason = 80;

function againText({ state, retryAtMs }: RememberedRefusal, nowMs: number): string {
  if (state === 'older') return 'no: no longer offered';
  return retryAtMs <= nowMs ? 'at the next cycle' : `from ${minuteTime(retryAtMs)}`;
}

/**
 * @returns the forgotten refusals with the next attempt of each, and next `writ pull` if the server still offers one of these
 *   releases; one line UNCHANGED without any
 */
export function showForgotten(result: Bounded<RefusalsResult>): Block {
  const { refusals } = result;
  if (refusals.length === 0) return { lines: ['UNCHANGED nothing was remembered as refused'] };
  const standing = refusals.filter(({ state }) => state === 'standing');
  const lines = [
    `FORGOTTEN ${counted(refusals.length, 'refusal')}`,
    ...refusals.map(({ bundle, serial, code, state }) => {
      const next = state === 'standing' ? 'is tried again at the next pull' : 'is no longer offered';
      return `  ${bundle} ${serial} [${code}] ${next}`;
    }),
    ...truncatedLines(result),
  ];
  return standing.length === 0 ? { lines } : { lines, next: 'writ pull' };
}
