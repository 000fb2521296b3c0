// `npm run package:sign -- release --repository DIR --keys DIR`: publishes SHA256SUMS and the bill of materials of a release as the
// bundle `packages`, with the given keys. A user with the root of the repository verifies them with `writ inspect`.
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { run } from './run.js';

const options = { repository: { type: 'string' }, keys: { type: 'string' } };
const { positionals, values } = parseArgs({ options, allowPositionals: true });
const [release] = positionals;
if (release === undefined || values.repository === undefined || values.keys === undefined) {
  process.stderr.write('usage: npm run package:sign -- RELEASE --repository DIR --keys DIR\n');
  process.exit(2);
}
const root = fileURLToPath(new URL('../..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const source = mkdtempSync(join(tmpdir(), 'writ-sums-'));
try {
  for (const name of ['SHA256SUMS', 'sbom.cdx.json']) copyFileSync(join(release, name), join(source, name));
  const where = ['--repository', values.repository, '--keys', values.keys];
  const what = ['--bundle', 'packages', '--revision', version];
  process.stdout.write(
    run(process.execPath, [join(root, 'dist/writ/main.js'), 'publish', source, ...where, ...what]),
  );
} finally {
  rmSync(source, { recursive: true, force: true });
}
