// What scripts/compile-schemas.js makes of the schemas of the state files, at each build: a validator each, by its key.
import type { ValidateFunction } from 'ajv';

export const validators: Readonly<Record<string, ValidateFunction>>;
