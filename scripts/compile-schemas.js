// Makes the validators of the JSON Schemas of Writ, by ajv, as a module beside the compiled source that imports it
// (src/core/schema). Importing ajv and compiling at run time took a third of what `writ status` takes.
// Runs after tsc, on its output. A schema that is not in this list is compiled at its first use.
import { writeFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import standalone from 'ajv/dist/standalone/index.js';

const compiled = (path) => new URL(`../dist/src/${path}`, import.meta.url);
const made = compiled('core/schema/compiled-schemas.js');

// The imported module itself imports the generated file, so an empty one must exist first.
writeFileSync(made, 'export const validators = {};\n');
const { schemaKey, schemaOptions } = await import(compiled('core/schema/own-schemas.js'));
const schemas = Object.fromEntries((await ownSchemas()).map((schema) => [schemaKey(schema), schema]));
writeFileSync(made, codeOf(schemas));

async function ownSchemas() {
  const [
    { configSchema, driverSchemaOf },
    { driverKinds },
    { ledgerSchema },
    { refusalsSchema },
    { installIdSchema },
    { fleetSchemas },
  ] = await Promise.all([
    import(compiled('core/config/config-schema.js')),
    import(compiled('workers/registry.js')),
    import(compiled('agent/state/ledger-schema.js')),
    import(compiled('agent/state/refusals-file.js')),
    import(compiled('agent/identity/install-id.js')),
    import(compiled('agent/fleet/fleet-files.js')),
  ]);
  const ofState = [ledgerSchema, refusalsSchema, installIdSchema, ...fleetSchemas];
  return [configSchema, ...driverKinds.map(driverSchemaOf), ...ofState];
}

function codeOf(byKey) {
  const ajv = new Ajv({ ...schemaOptions, schemas: byKey, code: { source: true, esm: true } });
  const names = Object.keys(byKey);
  const lines = [
    "import { createRequire } from 'node:module';",
    // ajv's own helpers are CommonJS, and small.
    'const require = createRequire(import.meta.url);',
    standalone.default(ajv, Object.fromEntries(names.map((name) => [name, name]))),
    `export const validators = { ${names.join(', ')} };`,
  ];
  return `${lines.join('\n')}\n`;
}
