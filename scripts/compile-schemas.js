// Makes the validators of our own JSON Schemas, by ajv, as modules beside the compiled sources that import them
// (src/core/schema). Importing ajv and compiling at run time took a third of what `writ status` takes.
// Runs behind tsc, on its output; a schema that this list leaves out is compiled when it is asked for.
import { writeFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import standalone from 'ajv/dist/standalone/index.js';

const compiled = (path) => new URL(`../dist/src/${path}`, import.meta.url);
const load = (path) => import(compiled(path));

const { schemaKey, schemaOptions, schemasOf } = await ownSchemas();
for (const [use, schemas] of Object.entries(schemasOf)) write(use, schemas);

async function ownSchemas() {
  // They import what is made here: for now there is nothing in it.
  for (const use of ['config', 'state']) writeFileSync(fileOf(use), 'export const validators = {};\n');
  const { configSchema, driverSchema } = await load('core/config/config-schema.js');
  const { driverKinds } = await load('workers/registry.js');
  const { ledgerSchema } = await load('agent/state/ledger-schema.js');
  const { refusalsSchema } = await load('agent/state/refusals-file.js');
  const config = [configSchema, ...driverKinds.map(driverSchema)];
  const own = await load('core/schema/own-schemas.js');
  return { ...own, schemasOf: { config, state: [ledgerSchema, refusalsSchema] } };
}

function write(use, schemas) {
  const byKey = Object.fromEntries(schemas.map((schema) => [schemaKey(use, schema), schema]));
  const ajv = new Ajv({ ...schemaOptions[use], schemas: byKey, code: { source: true, esm: true } });
  const names = Object.keys(byKey);
  const code = standalone.default(ajv, Object.fromEntries(names.map((name) => [name, name])));
  const text = [
    "import { createRequire } from 'node:module';",
    // ajv's own helpers are CommonJS, and small.
    'const require = createRequire(import.meta.url);',
    code,
    `export const validators = { ${names.join(', ')} };`,
  ];
  writeFileSync(fileOf(use), `${text.join('\n')}\n`);
}

function fileOf(use) {
  return compiled(`core/schema/compiled-${use}.js`);
}
