// Asserts on the code of an error, never on its words.
import assert from 'node:assert/strict';
import { type ErrorCode, WritError } from '../../../src/core/errors.js';

/** Runs `act`, which must throw a WritError with this code; returns the error for its facts. */
export function throwsCode(code: ErrorCode, act: () => unknown): WritError {
  try {
    act();
  } catch (error) {
    return checkCode(code, error);
  }
  return assert.fail(`expected ${code}, and nothing was thrown`);
}

/**
 * @returns the WritError with which `promise` rejects, for its facts
 * @throws AssertionError if it has another code or the promise is fulfilled; and any other error of the promise
 */
export async function rejectsCode(code: ErrorCode, promise: Promise<unknown>): Promise<WritError> {
  try {
    await promise;
  } catch (error) {
    return checkCode(code, error);
  }
  return assert.fail(`expected ${code}, and the promise was fulfilled`);
}

function checkCode(code: ErrorCode, error: unknown): WritError {
  if (!(error instanceof WritError)) throw error;
  assert.equal(error.code, code, error.message);
  return error;
}
