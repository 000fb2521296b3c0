// A door to a service manager that only remembers what it was told.
import type { Notifier } from '../../../src/platform/telemetry/sd-notify.js';

export interface FakeNotifier extends Notifier {
  /** The lines of every datagram, in their order. */
  readonly told: readonly (readonly string[])[];
  /** What the next datagrams end with. */
  answer(state: 'told' | 'failed'): void;
}

export function fakeNotifier(options: { readonly watchdogMs?: number } = {}): FakeNotifier {
  const told: (readonly string[])[] = [];
  let state: 'told' | 'failed' = 'told';
  return {
    told,
    answer: (next) => {
      state = next;
    },
    tell: (lines) => {
      told.push(lines);
      return Promise.resolve(state);
    },
    idle: () => Promise.resolve(),
    ...options,
  };
}
