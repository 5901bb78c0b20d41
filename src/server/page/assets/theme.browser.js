/** Sets the theme before anything is painted: the only script that the document waits for. */
import { showTheme } from "./script/preferences.js";

showTheme();
