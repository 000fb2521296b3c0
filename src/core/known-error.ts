// The row of the catalogue for a code from another program: of another version, or invented by a host.
import { type ErrorCode, type ErrorRow, errorCodes } from './error-codes.js';

/** @returns undefined for a code that this version does not have */
export function knownError(code: string): ErrorRow | undefined {
  return Object.hasOwn(errorCodes, code) ? errorCodes[code as ErrorCode] : undefined;
}
