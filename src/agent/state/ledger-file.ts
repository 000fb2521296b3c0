// Opens ledger.json: reads and writes the complete document and validates it with its schema. Owns no member of the ledger.
import { given } from '../../core/given.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { renameFormerMembers } from './former-ledger-members.js';
import { emptyLedger, type Ledger } from './ledger.js';
import { ledgerSchema } from './ledger-schema.js';
import { openStateFile, type StateFile } from './state-file.js';

/**
 * Opens also a damaged ledger: its `condition` is then the error.
 * @param mayCreate returns false on a host that had a ledger before: then the first write does not create a missing ledger,
 *   because generation numbers would be used twice
 * @throws WritError DISK_* if the file cannot be read; STATE_TOO_NEW
 */
export function openLedger(path: string, durable: DurableFs, mayCreate?: () => boolean): StateFile<Ledger> {
  const form = { schema: ledgerSchema, initial: emptyLedger(), migrate: renameFormerMembers };
  return openStateFile({ path, op: 'ledger', ...form, durable, ...given({ mayCreate }) });
}
