// One way to keep a small JSON document in the state directory: read with a bound, judged by a JSON Schema,
// written whole through the durable layer and only when its bytes change. Owns no document's meaning.
import * as fs from 'node:fs';
import { Ajv, type SchemaObject } from 'ajv';
import { isSystemError, WritError } from '../core/errors.js';
import { type DurableFs, diskError } from '../platform/durable-fs.js';

const maxStateBytes = 16_000_000;

export interface StateFile<T> {
  /** The document as last read or written. */
  read(): T;
  /** Makes the next document durable before it returns; writes nothing when it is the same. */
  write(next: T): void;
}

export interface StateFileOptions<T> {
  readonly path: string;
  /** Label of the write, as `ledger`. */
  readonly op: string;
  readonly schema: SchemaObject;
  /** The document of a host that has none yet. */
  readonly initial: T;
  readonly durable: DurableFs;
}

/**
 * Opens a document.
 * @throws WritError STATE_DAMAGED when the file is there and is not what its schema says; DISK_*
 */
export function openStateFile<T>(options: StateFileOptions<T>): StateFile<T> {
  const { path, durable, op } = options;
  let text = readBounded(path, op);
  let value = text === undefined ? options.initial : parse<T>(text, options);
  return {
    read: () => value,
    write: (next) => {
      const nextText = `${JSON.stringify(next)}\n`;
      if (nextText !== text) durable.writeFile(op, path, nextText, 0o600);
      text = nextText;
      value = next;
    },
  };
}

function readBounded(path: string, op: string): string | undefined {
  try {
    const { size } = fs.statSync(path);
    if (size > maxStateBytes)
      throw new WritError('STATE_DAMAGED', `${path} has ${size} bytes`, { facts: { path } });
    return fs.readFileSync(path, 'utf8');
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw diskError(error, { op: `${op}:read`, path });
  }
}

function parse<T>(text: string, options: StateFileOptions<T>): T {
  const damaged = (why: string, cause?: unknown): WritError =>
    new WritError('STATE_DAMAGED', `${options.path}: ${why}`, { facts: { path: options.path }, cause });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw damaged('not JSON', error);
  }
  // The schema is our own: it need not be judged itself at every start.
  const ajv = new Ajv({ strict: true, allowUnionTypes: true, meta: false, validateSchema: false });
  const validate = ajv.compile<T>(options.schema);
  if (validate(value)) return value;
  const first = validate.errors?.[0];
  throw damaged(`${first?.instancePath || '/'} ${first?.message ?? 'is wrong'}`);
}
