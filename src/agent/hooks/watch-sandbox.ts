// Tries the sandbox again while the agent runs, so that a failure is reported before a release needs it. Decides the times, and
// records in the ledger that a sandbox worked on this host.
import type { Exclusive } from '../job/exclusive.js';
import type { Host } from '../state/host.js';
import { ledgerSection } from '../state/ledger.js';
import { trySandbox } from './sandbox.js';
import { countConfined } from './sandbox-rules.js';

const trialEveryMs = 3_600_000;
/** Shorter after a failure, because a busy host recovers and an operator may have fixed the sandbox. */
const retryMs = 60_000;

const changeSandbox = ledgerSection('sandboxWorked');

export interface SandboxRoundOptions {
  /** Called in each round, because a reload may have replaced the host. */
  readonly host: () => Host;
  readonly exclusive: Exclusive;
  /** Called when the state of the sandbox changed. */
  readonly onChange: () => void;
}

/**
 * @returns one round, which resolves with the milliseconds until the next one; with undefined if no command needs a sandbox. It
 *   never rejects
 */
export function createSandboxRound({
  host,
  exclusive,
  onChange,
}: SandboxRoundOptions): () => Promise<number | undefined> {
  // The start of the host has tried it once.
  let isRepeated = false;
  return async () => {
    const { sandbox, config, log } = host();
    if (config.sandbox === 'off' || countConfined(config) === 0) return undefined;
    const before = sandbox.status().state;
    await trySandbox(host(), { isRepeated });
    isRepeated = true;
    try {
      await exclusive(async () => noteSandbox(host()));
    } catch (error) {
      log.error({ err: error }, 'that a sandbox works could not be noted');
    }
    const { state, withoutIt } = sandbox.status();
    if (state !== before) onChange();
    return withoutIt === 'refused' ? retryMs : trialEveryMs;
  };
}

/**
 * Records in the ledger whether a sandbox worked here, for later process runs: under `auto` a host that loses its sandbox runs
 * commands without it, and must report that. `sandbox: off` removes the record. @throws WritError STATE_DAMAGED
 */
export function noteSandbox({ sandbox, ledger }: Pick<Host, 'sandbox' | 'ledger'>): void {
  const { mode, state } = sandbox.status();
  const known = ledger.read().sandboxWorked;
  const worked = mode === 'off' ? undefined : state === 'on' ? true : known;
  if (worked === known) return;
  // A full disk must not stop a start.
  using _ = ledger.tolerateDiskErrors(() => false);
  ledger.write(changeSandbox(ledger.read(), { sandboxWorked: worked }));
}
