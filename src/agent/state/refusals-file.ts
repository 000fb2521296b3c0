// Opens rejected.json, the remembered refusals of a host. Owns its schema; refusal-rules decides its content.
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { RefusalsDocument } from './host.js';
import { openStateFile, type StateFile } from './state-file.js';

const digest = { type: 'string', pattern: '^sha256:[0-9a-f]{64}$' };
const refusal = {
  type: 'object',
  required: [
    'bundle',
    'channel',
    'serial',
    'manifestDigest',
    'code',
    'message',
    'atMs',
    'retryAtMs',
    'tries',
    'refusedWith',
  ],
  properties: {
    bundle: { type: 'string' },
    channel: { type: 'string' },
    serial: { type: 'integer' },
    manifestDigest: digest,
    code: { type: 'string' },
    message: { type: 'string' },
    atMs: { type: 'integer' },
    retryAtMs: { type: 'integer' },
    tries: { type: 'integer', minimum: 1 },
    refusedWith: { type: 'array', items: { type: 'string' } },
  },
};
/** JSON Schema of rejected.json. */
export const refusalsSchema = {
  type: 'object',
  required: ['writ', 'refusals'],
  properties: { writ: { const: 1 }, config: digest, refusals: { type: 'array', items: refusal } },
};

const initial: RefusalsDocument = { writ: 1, refusals: [] };

/** Opens also a damaged file: its `condition` is then the error. @throws WritError DISK_*; STATE_TOO_NEW */
export function openRefusals(path: string, durable: DurableFs): StateFile<RefusalsDocument> {
  return openStateFile({ path, op: 'refusals', schema: refusalsSchema, initial, durable });
}
