// `npm run package`: everything that is shipped, from a built checkout into release/. Here: the npm tarball.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packNpmPackage, stageNpmPackage } from './npm-package.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const release = join(root, 'release');
rmSync(release, { recursive: true, force: true });
mkdirSync(release);
stageNpmPackage(root, join(release, 'npm'));
console.log(packNpmPackage(join(release, 'npm'), release));
