// What is wrong at a place of a configuration, and the schemas that say so. Types alone.

/** A JSON Schema (draft 7) as far as this file uses it. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxProperties?: number;
  readonly uniqueItems?: boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly propertyNames?: Schema;
  readonly additionalProperties?: false | Schema;
}

/** Where a value is, before its line is known: keys and indices from the top. */
export type ConfigPath = readonly (string | number)[];

/** A mistake at a place in the data. */
export interface Finding {
  readonly path: ConfigPath;
  /** `key`: the key itself is wrong, so its line is named and not the value's. */
  readonly at: 'key' | 'value';
  readonly text: string;
  readonly code?: ConfigCode;
}

export type ConfigCode = 'CONFIG_SYNTAX' | 'CONFIG_INVALID' | 'SOCKET_PATH_TOO_LONG';
