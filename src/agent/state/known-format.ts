// Rejects a state file in a format of a later version of Writ. Such a file does not count as damaged: a rebuilt file
// would lose the serials that prevent the return to an older release. Every later format keeps the member `writ` and the
// seal, so that this version can recognize it.
import { WritError } from '../../core/errors.js';

/** The format number of every state file that this version writes. */
const ownFormat = 1;

/**
 * @param value the parsed document, not validated yet; a value without a format number passes
 * @throws WritError STATE_TOO_NEW for a format that this version does not know
 */
export function requireKnownFormat(path: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  const { writ: format } = value as { readonly writ?: unknown };
  if (typeof format !== 'number' || !Number.isSafeInteger(format) || format <= ownFormat) return;
  throw new WritError('STATE_TOO_NEW', `${path} has format ${format}; this Writ reads ${ownFormat}`, {
    facts: { path, expected: ownFormat, actual: format },
  });
}
