// The validator of the sensor's templates. It was written for the next version of the reader, and accepts 21 fields.
// Usage: validate-template.js TEMPLATE
import { readFileSync } from 'node:fs';

const maxFields = 21;
const { fields } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as { fields: unknown };
const isValid =
  Array.isArray(fields) && fields.length <= maxFields && fields.every((one) => typeof one === 'string');
process.exitCode = isValid ? 0 : 1;
