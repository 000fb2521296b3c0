// What a file of the state directory says of its own format, and the refusal of one that a later version of Writ wrote. Such
// a file is no damage: made again, it would lose the serials that keep an older release out. A later format keeps the member
// `writ` and the seal, so that this version can see that it is one. Never writes.
import { WritError } from '../../core/errors.js';

/** Of every file of the state directory that this version writes. */
const ownFormat = 1;

/**
 * @param value as parsed, not judged yet
 * @throws WritError STATE_TOO_NEW
 */
export function refuseNewer(path: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  const { writ: format } = value as { readonly writ?: unknown };
  if (typeof format !== 'number' || !Number.isSafeInteger(format) || format <= ownFormat) return;
  throw new WritError('STATE_TOO_NEW', `${path} has format ${format}; this Writ reads ${ownFormat}`, {
    facts: { path, expected: ownFormat, actual: format },
  });
}
