// Refreshes metadata by tuf-js and ends: `node tuf-js-refresh.js DIRECTORY URL`, with a root.json in the directory.
import { Updater } from 'tuf-js';

const [metadataDir = '', metadataBaseUrl = ''] = process.argv.slice(2);
await new Updater({ metadataDir, metadataBaseUrl }).refresh();
