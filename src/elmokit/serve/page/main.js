// Where the page begins: another page, without a server, brings another backend.

import { backend } from "./backend.js";
import { explore } from "./explorer.js";

explore(backend, document.body);
