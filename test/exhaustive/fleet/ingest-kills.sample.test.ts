// The ingest is killed three times, after times that the seed chooses.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/fleet/ingest-kills', 3);
await import('./ingest-kills.test.js');
