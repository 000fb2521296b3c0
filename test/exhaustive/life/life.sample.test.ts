// Two hours of a life.
import { takeSample } from '../../kit/assert/sample.js';

takeSample('exhaustive/life/life', 2);
await import('./life.test.js');
