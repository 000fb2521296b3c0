// The ledger as a file: read and written whole, and judged by its schema. Owns no member of it.
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { inTodaysWords } from './former-words.js';
import { emptyLedger, type Ledger } from './ledger.js';
import { ledgerSchema } from './ledger-schema.js';
import { openStateFile, type StateFile } from './state-file.js';

/** @throws WritError DISK_* when it cannot be read; one that is damaged is opened, and says so */
export function openLedger(path: string, durable: DurableFs): StateFile<Ledger> {
  const form = { schema: ledgerSchema, initial: emptyLedger(), renew: inTodaysWords };
  return openStateFile({ path, op: 'ledger', ...form, durable });
}
