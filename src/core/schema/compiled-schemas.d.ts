// The output of scripts/compile-schemas.js, written at each build: the validator of each of Writ's JSON Schemas, by its key.
import type { ValidateFunction } from 'ajv';

export const validators: Readonly<Record<string, ValidateFunction>>;
