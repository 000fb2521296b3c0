// What scripts/compile-schemas.js makes of our own JSON Schemas, at each build: a validator each, by its key.
import type { ValidateFunction } from 'ajv';

export const validators: Readonly<Record<string, ValidateFunction>>;
