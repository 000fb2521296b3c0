// The ledger as a file: read and written whole, and judged by its schema. Owns no member of it.
import { given } from '../../core/given.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { inTodaysWords } from './former-words.js';
import { emptyLedger, type Ledger } from './ledger.js';
import { ledgerSchema } from './ledger-schema.js';
import { openStateFile, type StateFile } from './state-file.js';

/**
 * @param mayBegin false on a host that has had a ledger: then one that is gone is not begun again by a first write, for
 *   its numbers would be used twice
 * @throws WritError DISK_* when it cannot be read; one that is damaged is opened, and says so
 */
export function openLedger(path: string, durable: DurableFs, mayBegin?: () => boolean): StateFile<Ledger> {
  const form = { schema: ledgerSchema, initial: emptyLedger(), renew: inTodaysWords };
  return openStateFile({ path, op: 'ledger', ...form, durable, ...given({ mayBegin }) });
}
