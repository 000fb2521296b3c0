// A notifier of a service manager that only records its lines.
import type { Notifier } from '../../../src/platform/telemetry/sd-notify.js';

export interface FakeNotifier extends Notifier {
  /** The lines of each datagram, in order. */
  readonly notified: readonly (readonly string[])[];
  /** Result of the next datagrams. */
  answer(state: 'sent' | 'failed'): void;
}

/** @returns a notifier that records its lines and reports them as sent, until `answer` sets another result */
export function fakeNotifier(options: { readonly watchdogMs?: number } = {}): FakeNotifier {
  const notified: (readonly string[])[] = [];
  let state: 'sent' | 'failed' = 'sent';
  return {
    notified,
    answer: (next) => {
      state = next;
    },
    notify: (lines) => {
      notified.push(lines);
      return Promise.resolve(state);
    },
    idle: () => Promise.resolve(),
    ...options,
  };
}
